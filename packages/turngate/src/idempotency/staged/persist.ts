/** Writes of a hold: settled by asking again while the lease lasts, typed when it was lost. */
import type { HoldAnswer } from '../../contract/staged-store.ts';
import { isTurngateError, TurngateError } from '../../core/errors.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { backoffMs, sleep } from '../../runtime/wait.ts';
import type { LiveHold } from './lease.ts';

const range = { baseMs: 20, capMs: 1_000 };

/** Calls a verb of the store; they may be repeated, so a lost answer is asked for again. */
export async function insisting<T>(
  runtime: Runtime,
  hold: LiveHold,
  call: () => Promise<T>,
): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await call();
    } catch (error) {
      const unanswered = isTurngateError(error, 'STORE_UNAVAILABLE');
      if (!unanswered || hold.lost || runtime.monoMs() >= hold.endMonoMs) throw error;
      await sleep(runtime, backoffMs(runtime, tries, range));
    }
  }
}

/** The same for a write. @throws LEASE_LOST when it touched nothing */
export async function persist(
  runtime: Runtime,
  hold: LiveHold,
  write: () => Promise<HoldAnswer>,
): Promise<void> {
  if ((await insisting(runtime, hold, write)) === 'lost') throw hold.lose();
}

const claimTriesMax = 3;

/** A claim or take-over. One whose answer stays away may be recorded, and is then finished later. */
export async function claiming<T>(runtime: Runtime, call: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await call();
    } catch (error) {
      if (!isTurngateError(error, 'STORE_UNAVAILABLE')) throw error;
      if (tries >= claimTriesMax) {
        const detail = { cause: error, outcome: 'unknown', retryAfterMs: 1_000 } as const;
        throw new TurngateError('STORE_UNAVAILABLE', error.message, detail);
      }
    }
    await sleep(runtime, backoffMs(runtime, tries, range));
  }
}
