/** Digest of the payload parts that may not change under one key. */
import { hash } from 'node:crypto';
import { canonicalJson } from './canonical-json.ts';

/**
 * `1.` and the SHA-256 of the canonical JSON in base64url. The number names the algorithm, so a
 * later one can live beside it: records with another number are compared by their own algorithm
 * or, when it is gone, not at all; a new release never turns old keys into 422s.
 */
export function fingerprintOf(value: unknown): string {
  return `1.${hash('sha256', canonicalJson(value === undefined ? null : value), 'base64url')}`;
}

/** Do two fingerprints speak of the same payload? Unknown algorithms are not held against anyone. */
export function sameFingerprint(stored: string, given: string): boolean {
  if (stored === given) return true;
  return algorithm(stored) !== algorithm(given);
}

function algorithm(fingerprint: string): string {
  return fingerprint.slice(0, fingerprint.indexOf('.'));
}
