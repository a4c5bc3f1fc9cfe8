/** What the lock laws are proved on, and the small helpers they share. */
import assert from 'node:assert/strict';
import type {
  LockAttempt,
  LockCapabilities,
  LockGranted,
  LockShare,
  LockStore,
} from '../contract/lock-store.ts';
import { systemRuntime } from '../runtime/runtime.ts';
import { sleep } from '../runtime/wait.ts';
import type { Law } from './runner.ts';

/** A lock store whose time can be waited for. */
export interface LockStoreTarget {
  readonly name: string;
  /** Called once per law. May give the same store each time: every law uses names of its own. */
  open(): Promise<LockStore>;
  /** Lets time pass on the store's clock. */
  passTime(ms: number): Promise<void>;
  /**
   * What the store declares, where it is less than everything: laws that do not apply are reported
   * with the reason. Compared with the store itself.
   */
  readonly capabilities?: Partial<LockCapabilities>;
  /** Optional verbs the store does not have. */
  readonly lacks?: readonly ('pass' | 'forceRelease')[];
  /** The shortest lease the store keeps to. Default 100. */
  readonly shortMs?: number;
  /** Ends a lease early, where leases end with a session. Default: the time of a short one passes. */
  endLease?(store: LockStore, attempt: LockAttempt): Promise<void>;
  /**
   * Ends the session that the store's grants live in, from outside. Given exactly where the store has
   * `onLoss`.
   */
  endSession?(store: LockStore): Promise<void>;
  /** Laws that cannot apply to this store for another reason: name → why. */
  readonly notApplicable?: Readonly<Record<string, string>>;
}

/** A law about lock stores. */
export type LockLaw = Law<LockStoreTarget>;

/** A lease that does not end during a law. */
export const longMs = 60_000;

/** A lease that ends when {@link endLeases} is called. */
export function shortMs(target: LockStoreTarget): number {
  return target.shortMs ?? 100;
}

/** Lets the short leases of these attempts end. */
export async function endLeases(
  target: LockStoreTarget,
  store: LockStore,
  ...attempts: LockAttempt[]
): Promise<void> {
  if (target.endLease === undefined) return await target.passTime(shortMs(target) * 1.5);
  for (const attempt of attempts) await target.endLease(store, attempt);
}

/** A new attempt. */
export function attemptAt(
  name: string,
  leaseMs: number = longMs,
  parts: Partial<LockAttempt> = {},
): LockAttempt {
  return { name, owner: systemRuntime.randomId(), leaseMs, ...parts };
}

/** A new attempt that stands in the queue while the name is held. */
export function queuedAt(name: string, parts: Partial<LockAttempt> = {}): LockAttempt {
  return attemptAt(name, longMs, { queueMs: longMs, ...parts });
}

/** A new attempt at a share of a name. */
export function sharedAt(
  name: string,
  share: LockShare,
  parts: Partial<LockAttempt> = {},
): LockAttempt {
  return attemptAt(name, longMs, { share, ...parts });
}

/** A name nobody has used. */
export function freshName(): string {
  return `law ${systemRuntime.randomId()}`;
}

/** The attempt is granted; its fence. */
export async function take(store: LockStore, attempt: LockAttempt): Promise<bigint> {
  const grant = await store.tryAcquire(attempt);
  if (grant.kind !== 'granted') assert.fail(`not granted: held for ${grant.remainingMs} ms more`);
  return grant.fence;
}

/** The attempt is refused because the name is held. */
export async function refused(store: LockStore, attempt: LockAttempt): Promise<number> {
  const grant = await store.tryAcquire(attempt);
  if (grant.kind !== 'held') assert.fail('granted although it is held');
  assert.ok(grant.remainingMs > 0, String(grant.remainingMs));
  return grant.remainingMs;
}

/** How many of these attempts, tried at once, were granted. */
export async function grantedOf(
  store: LockStore,
  attempts: readonly LockAttempt[],
): Promise<number> {
  const grants = await Promise.all(attempts.map((attempt) => store.tryAcquire(attempt)));
  return grants.filter(({ kind }) => kind === 'granted').length;
}

/** What was pushed to one attempt. */
export interface Pushes {
  readonly granted: LockGranted[];
  readonly count: () => number;
  readonly end: () => void;
}

/** Listens to what is pushed to an attempt. */
export function listen(store: LockStore, attempt: LockAttempt): Pushes {
  if (store.watch === undefined) assert.fail('a store with wakeup "push" has watch()');
  let count = 0;
  const granted: LockGranted[] = [];
  const end = store.watch(attempt, (grant) => {
    count++;
    if (grant !== undefined) granted.push(grant);
  });
  return { granted, count: () => count, end };
}

/** Waits until it is so; pushes may take a moment. */
export async function eventually(what: string, isSo: () => boolean): Promise<void> {
  const endMonoMs = systemRuntime.monoMs() + 5_000;
  while (!isSo()) {
    if (systemRuntime.monoMs() > endMonoMs) assert.fail(`it never came: ${what}`);
    await sleep(systemRuntime, 5);
  }
}

/** Why laws about queues do not apply. */
export function noQueue({ capabilities }: LockStoreTarget): string | undefined {
  return capabilities?.fairness === 'none' ? 'the store keeps no queue' : undefined;
}

/** Why laws about pushes do not apply. */
export function noPush({ capabilities }: LockStoreTarget): string | undefined {
  return capabilities?.wakeup === 'poll' ? 'waiters of this store poll' : undefined;
}

/** Why laws about shares do not apply. */
export function noShares({ capabilities }: LockStoreTarget): string | undefined {
  return capabilities?.shares === false ? 'the store has no shares' : undefined;
}

/** Why laws about blocks of fences do not apply. */
export function noBlocks({ capabilities }: LockStoreTarget): string | undefined {
  return capabilities?.fenceBlocks === false ? 'a grant has one fence here' : undefined;
}

/** Why laws about fences do not apply. */
export function noFences({ capabilities }: LockStoreTarget): string | undefined {
  return capabilities?.fencing === 'none' ? 'the store has no fences' : undefined;
}

/** Why laws about an optional verb do not apply. */
export function lacking(
  verb: 'pass' | 'forceRelease',
): (target: LockStoreTarget) => string | undefined {
  return ({ lacks }) => (lacks?.includes(verb) ? `the store has no ${verb}()` : undefined);
}

/** The first reason of several. */
export function either(
  ...reasons: readonly ((target: LockStoreTarget) => string | undefined)[]
): (target: LockStoreTarget) => string | undefined {
  return (target) => {
    for (const reason of reasons) {
      const why = reason(target);
      if (why !== undefined) return why;
    }
    return undefined;
  };
}
