/** Fences as values: checking them, comparing them, and the error for a holder of yesterday. */
import { TurngateError } from '../core/errors.ts';
import { optionError } from '../core/option.ts';

const fenceMax = 2n ** 63n - 1n; // What a signed 64-bit column holds.

/** @throws OPTION_INVALID */
export function checkFence(fence: unknown): bigint {
  if (typeof fence === 'bigint' && fence > 0n && fence <= fenceMax) return fence;
  throw optionError('fence', 'the fence of a lock, a bigint from 1 to 2^63 - 1', fence);
}

/** @throws OPTION_INVALID */
export function checkResource(resource: unknown): string {
  if (typeof resource === 'string' && resource !== '' && Buffer.byteLength(resource) <= 255) {
    return resource;
  }
  throw optionError('resource', 'a string of 1 to 255 bytes', resource);
}

/** What a holder is told whose fence is not the one that entered last. */
export function staleError(what: string, fence: bigint, mark: bigint | undefined): TurngateError {
  const seen = mark === undefined ? 'none has entered' : `${mark} has entered`;
  return new TurngateError('FENCE_STALE', `fence ${fence} may not touch ${what}: ${seen}`);
}
