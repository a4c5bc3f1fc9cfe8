/**
 * The claim: user locks (GET_LOCK) of the identity and of its payload on the transaction's own
 * connection, and a look at the record. They end with the connection, so a crash leaves nothing.
 */
import type { Claim, StoredRecord } from '../../contract/record-store.ts';
import type { Answer, Link, Row } from './driver.ts';
import * as sql from './statements.ts';

/** What a claim found. */
export type Seen =
  | {
      readonly kind: 'free';
      readonly nowMs: number;
      /** The owner of an expired record that is in the way. */
      readonly old: string | undefined;
    }
  | { readonly kind: 'found'; readonly record: StoredRecord }
  | { readonly kind: 'busy'; readonly sameFingerprint: boolean | undefined };

/** A claim's answer as read from the wire. */
export interface Taken {
  /** 0: not even the payload's lock; 1: the payload's; 2: both. */
  readonly taken: number;
  readonly nowMs: number;
  readonly found: sql.Found | undefined;
}

export function takenOf({ rows }: Answer): Taken {
  const [taken, ...rest] = rows[0] as Row;
  const found = rest[1] === null ? undefined : sql.foundOf(rest);
  return { taken: Number(taken), nowMs: Number(rest[0]), found };
}

/** The locks are not ours: is it another payload? */
export async function lookAtRival(link: Link, names: sql.ClaimNames, taken: number): Promise<Seen> {
  if (taken === 0) return { kind: 'busy', sameFingerprint: undefined };
  // We hold the payload's lock, so whoever holds the identity has another. But a dying connection frees
  // its locks one by one: the same holder must still be there a trip later.
  const first = await holderOf(link, names);
  const second = first === null ? null : await holderOf(link, names);
  return { kind: 'busy', sameFingerprint: second !== null && second === first ? false : undefined };
}

async function holderOf(link: Link, names: sql.ClaimNames): Promise<string | null> {
  const [answer] = await link.batch([sql.holder(names)]);
  return answer?.rows[0]?.[0] ?? null;
}

/** What a claim outside any transaction means; the row it saw may be uncommitted. */
export async function look(
  link: Link,
  claim: Claim,
  names: sql.ClaimNames,
  { taken, nowMs, found }: Taken,
): Promise<Seen> {
  if (found === undefined) {
    if (taken === 2) return { kind: 'free', nowMs, old: undefined };
    return await lookAtRival(link, names, taken);
  }
  // The row may belong to an open transaction: only another read, at a higher level, can tell.
  const [answer] = await link.batch([sql.select(names.id)]);
  const row = answer?.rows[0];
  const committed = row && sql.foundOf(row);
  const { owner, fingerprint } = found.record;
  if (committed?.record.owner === owner) {
    if (committed.live) return { kind: 'found', record: committed.record };
    if (taken === 2) return { kind: 'free', nowMs, old: owner };
    return await lookAtRival(link, names, taken);
  }
  return { kind: 'busy', sameFingerprint: fingerprint === claim.fingerprint };
}
