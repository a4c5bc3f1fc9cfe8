/** Taking back what a lost reply, an abort or a late grant may have left in the store. */
import type { LockAttempt, LockStore } from '../contract/lock-store.ts';
import { emit } from '../runtime/events.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { backoffMs } from '../runtime/wait.ts';

const retryRange = { baseMs: 50, capMs: 2_000 };

/**
 * Releases an attempt without anybody waiting for it: after `pending` (a command that may still be
 * granted) has settled, then again with back-off until it works or the lease has ended by itself.
 * Never rejects, keeps no process alive.
 */
export function releaseInBackground(
  runtime: Runtime,
  store: LockStore,
  attempt: LockAttempt,
  pending?: Promise<unknown>,
): void {
  const endMonoMs = runtime.monoMs() + attempt.leaseMs;
  const tryRelease = (tries: number): void => {
    store.release(attempt).catch((error: unknown) => {
      emit('lock', { type: 'release-failed', lock: attempt.name, store: store.name, error });
      if (runtime.monoMs() >= endMonoMs) return;
      runtime.timer(backoffMs(runtime, tries, retryRange), false, () => tryRelease(tries + 1));
    });
  };
  if (pending === undefined) tryRelease(0);
  else void pending.catch(() => undefined).then(() => tryRelease(0));
}
