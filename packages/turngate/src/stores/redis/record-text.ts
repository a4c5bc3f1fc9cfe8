/**
 * How a record is written in Redis: one string, so that a repeat is one GET. Owners and fingerprints
 * have no blanks; the result comes last and may hold anything.
 *
 * running:  r<owner> <fingerprint>
 * finished: d<first ms> <expires ms> <owner> <fingerprint> <result>, with f for a refusal
 */
import type { Claim, StoredRecord, WorkResult } from '../../contract/record-store.ts';
import { TurngateError } from '../../core/errors.ts';

/** What stands under an identity. */
export type Standing =
  | { readonly kind: 'running'; readonly owner: string; readonly fingerprint: string }
  | { readonly kind: 'finished'; readonly record: StoredRecord };

/** The claim, while the work runs. */
export function runningText({ owner, fingerprint }: Claim): string {
  return `r${owner} ${fingerprint}`;
}

/** The first character of a finished record. */
export function stateLetter({ state }: WorkResult): 'd' | 'f' {
  return state === 'done' ? 'd' : 'f';
}

/** What follows the times of a finished record. */
export function finishedRest({ owner, fingerprint }: Claim, { result }: WorkResult): string {
  return `${owner} ${fingerprint} ${result}`;
}

/** @throws RECORD_UNREADABLE for what no version of ours has written */
export function standingOf(text: string): Standing {
  if (text.startsWith('r')) {
    const [owner = '', fingerprint = ''] = words(text.slice(1), 1);
    return { kind: 'running', owner, fingerprint };
  }
  const [first, expires, owner, fingerprint, result] = words(text.slice(1), 4);
  const letter = text[0];
  if ((letter !== 'd' && letter !== 'f') || result === undefined || fingerprint === undefined) {
    throw new TurngateError('RECORD_UNREADABLE', 'there is something else under the record’s name');
  }
  return {
    kind: 'finished',
    record: {
      state: letter === 'd' ? 'done' : 'refused',
      fingerprint,
      owner: owner as string,
      result,
      firstProcessedAtMs: Number(first),
      expiresAtMs: Number(expires),
    },
  };
}

/** The first `count` words, and what is left. */
function words(text: string, count: number): string[] {
  const found: string[] = [];
  let from = 0;
  for (let i = 0; i < count; i++) {
    const blank = text.indexOf(' ', from);
    if (blank < 0) break;
    found.push(text.slice(from, blank));
    from = blank + 1;
  }
  found.push(text.slice(from));
  return found;
}
