/** Several names held at once: all or none, in one order everywhere, with one deadline. */
import type { TurngateError } from '../core/errors.ts';
import { optionError } from '../core/option.ts';
import type { ReleaseResult } from './hold.ts';
import type { LockHandle, UnfencedLockHandle } from './lock-handle.ts';
import { checkLockName } from './options.ts';

/** Names asked for together at most: each is a lock of its own in the store. */
const namesMax = 64;

/**
 * Several locks held at once. Losing one of them counts as losing all: `signal` aborts and
 * {@link assertHeld} throws.
 */
export class LockGroup implements AsyncDisposable {
  /** One handle per name, sorted by name. */
  readonly locks: readonly LockHandle[];
  private combined: AbortSignal | undefined;
  private left: Promise<ReleaseResult> | undefined;

  /** @internal */
  constructor(locks: readonly LockHandle[]) {
    this.locks = locks;
  }

  /** The names, sorted, each once. */
  get names(): readonly string[] {
    return this.locks.map(({ name }) => name);
  }

  /** The fence of one name: fences are comparable only within a name. */
  fenceOf(name: string): bigint {
    const lock = this.locks.find((candidate) => candidate.name === name);
    if (lock === undefined) throw optionError('name', `one of ${this.names.join(', ')}`, name);
    return lock.fence;
  }

  /** Aborts with LOCK_LOST when the first of the locks is lost. */
  get signal(): AbortSignal {
    this.combined ??= AbortSignal.any(this.locks.map(({ signal }) => signal));
    return this.combined;
  }

  /** Resolves with the LOCK_LOST error of the first lock that is lost. Never rejects. */
  get lost(): Promise<TurngateError> {
    return Promise.race(this.locks.map(({ lost }) => lost));
  }

  /** True only while all of them are certainly held. Synchronous. */
  isHeld(): boolean {
    return this.left === undefined && this.locks.every((lock) => lock.isHeld());
  }

  /** @throws LOCK_LOST when one of them may have ended. Synchronous. */
  assertHeld(): void {
    for (const lock of this.locks) lock.assertHeld();
  }

  /** The least of what is left of each. */
  remainingMs(): number {
    return Math.min(...this.locks.map((lock) => lock.remainingMs()));
  }

  /** Lets all of them go; answers the worst of their answers. Safe to repeat. */
  release(): Promise<ReleaseResult> {
    this.left ??= releaseAll(this.locks);
    return this.left;
  }

  /** Releases at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }
}

/** A group of locks without fences. */
export interface UnfencedLockGroup extends Omit<LockGroup, 'locks' | 'fenceOf'> {
  /** One handle per name, sorted by name. */
  readonly locks: readonly UnfencedLockHandle[];
}

async function releaseAll(locks: readonly LockHandle[]): Promise<ReleaseResult> {
  const answers = await Promise.all(locks.map((lock) => lock.release()));
  if (answers.includes('taken')) return 'taken';
  return answers.includes('expired') ? 'expired' : 'released';
}

/**
 * The names in the order in which everybody takes them, so that no two groups wait for each other.
 *
 * @throws OPTION_INVALID
 */
export function orderedNames(names: readonly string[]): readonly string[] {
  if (names.length < 1 || names.length > namesMax) {
    throw optionError('lock names', `1 to ${namesMax} names`, names);
  }
  for (const name of names) checkLockName(name);
  return [...new Set(names)].sort(); // By code units: the same in every process and locale.
}

/** Takes them one after the other; on failure lets go of those it has and rejects. */
export async function acquireInOrder(
  names: readonly string[],
  acquireOne: (name: string) => Promise<LockHandle>,
): Promise<LockGroup> {
  const locks: LockHandle[] = [];
  try {
    for (const name of names) {
      const lock = await acquireOne(name);
      locks.push(lock);
    }
    // One that was lost while we waited for the next: nobody may work under half a group.
    for (const lock of locks) lock.assertHeld();
  } catch (error) {
    await releaseAll(locks);
    throw error;
  }
  return new LockGroup(locks);
}
