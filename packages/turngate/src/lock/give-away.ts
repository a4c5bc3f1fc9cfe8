/** A lock as text: given away by one process, adopted by another with the same fence. */
import type { LockAttempt, LockShare } from '../contract/lock-store.ts';
import { TurngateError } from '../core/errors.ts';
import { knownOptions, optionError } from '../core/option.ts';
import { waitFor } from '../runtime/wait.ts';
import { Hold, Turn } from './hold.ts';
import { checkLockName, type LockOptions, lockTiming } from './options.ts';
import { callLimitMs, type LockParts, storeError } from './parts.ts';
import { closeTurn } from './turn-end.ts';

/** What of the options still matters when a lock is adopted. */
export type AdoptOptions = Pick<LockOptions, 'maxHoldMs' | 'renew' | 'signal'>;

interface Text {
  readonly turngateLock: 1;
  readonly store: string;
  readonly name: string;
  readonly owner: string;
  readonly leaseMs: number;
  readonly share?: LockShare;
  readonly fence: string;
}

/** Takes the hold out of this process's care, without touching the store. */
export function giveAway(parts: LockParts, hold: Hold): string {
  const { turn } = hold;
  if (hold.handles > 1)
    throw optionError('serialize()', 'called when one handle is left', hold.handles);
  const { name, owner, leaseMs, share } = turn.attempt;
  const text: Text = {
    turngateLock: 1,
    store: parts.store.name,
    name,
    owner,
    leaseMs,
    ...(share && { share }),
    fence: String(hold.fence),
  };
  hold.state = 'given-away';
  closeTurn(parts, turn);
  const { line } = turn;
  if (line?.turn === turn) {
    line.turn = undefined;
    line.proceed();
  }
  return JSON.stringify(text);
}

/** Asks the store by a renewal whether the lock is still there, and takes it into our care. */
export async function adopt(parts: LockParts, text: string, options: AdoptOptions): Promise<Hold> {
  knownOptions('adopt options', options, ['maxHoldMs', 'renew', 'signal']);
  const { fence, ...given } = parse(parts, text);
  const timing = lockTiming({ ...options, leaseMs: given.leaseMs });
  const { runtime, store } = parts;
  const sentMonoMs = runtime.monoMs();
  const sentWallMs = runtime.wallMs();
  let answer: string | undefined;
  try {
    [answer] = await waitFor(runtime, store.renew([given]), {
      limitMs: callLimitMs,
      onCut: (cut) => storeError(parts, cut === 'abort' ? 'was not waited for' : 'gave no answer'),
      signal: options.signal,
    });
  } catch (error) {
    if (error instanceof TurngateError) throw error;
    throw storeError(parts, 'failed to renew an adopted lock', error);
  }
  if (answer !== 'ours') {
    throw new TurngateError('LOCK_LOST', `lock "${given.name}" cannot be adopted (${answer})`);
  }
  const turn = new Turn(given, fence, sentMonoMs, timing.renew, undefined);
  turn.extend(sentMonoMs, sentWallMs);
  const hold = new Hold(parts.keeper, turn, sentMonoMs, timing);
  parts.renewal.watch(turn);
  return hold;
}

/** Owners travel to the store beside those of other locks: an odd one must not spoil their renewal. */
const printable = /^[\x21-\x7e]{1,200}$/;

function parse(parts: LockParts, text: string): LockAttempt & { readonly fence: bigint } {
  const bad = (): TurngateError =>
    optionError('lock text', `one made by serialize() on store "${parts.store.name}"`, 'another');
  if (typeof text !== 'string' || text.length > 10_000) throw bad();
  let read: Partial<Text> | null;
  try {
    read = JSON.parse(text) as Partial<Text> | null;
  } catch {
    throw bad();
  }
  const { turngateLock, store, name, owner, leaseMs, share, fence } = read ?? {};
  if (turngateLock !== 1 || store !== parts.store.name) throw bad();
  if (typeof owner !== 'string' || !printable.test(owner)) throw bad();
  if (typeof fence !== 'string' || !/^\d{1,30}$/.test(fence) || typeof leaseMs !== 'number') {
    throw bad();
  }
  return {
    name: checkLockName(name),
    owner,
    leaseMs,
    ...(share && { share }),
    fence: BigInt(fence),
  };
}
