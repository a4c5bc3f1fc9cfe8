/** Several wishes as one argument of a script: see scripts/include-asked.lua. */
import type { LockAttempt } from '../../contract/lock-store.ts';

/** Their owners; the lease of each before the first owner who has it. */
export function askedText(attempts: readonly LockAttempt[]): string {
  const asked: (string | number)[] = [];
  let lease = 0;
  for (const { owner, leaseMs } of attempts) {
    if (lease !== leaseMs) {
      lease = leaseMs;
      asked.push(lease);
    }
    asked.push(owner);
  }
  return JSON.stringify(asked);
}
