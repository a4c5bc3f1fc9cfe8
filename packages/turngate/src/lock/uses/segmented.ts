/** A hot name split into several, so that those who need any part of it do not wait for each other. */
import { hash64 } from '../../core/hash64.ts';
import { functionOption, integerOption, knownOptions, optionError } from '../../core/option.ts';
import { type Runtime, systemRuntime } from '../../runtime/runtime.ts';
import { checkLockName, type LockOptions, lockTiming } from '../options.ts';
import type { HeldLock, LockSource } from './lock-source.ts';

/** Options of {@link segmented}. */
export interface SegmentedOptions {
  /** How many segments. Changing it in one process and not in others breaks the exclusion. */
  readonly segments: number;
  /** Clocks, timers and chance for tests. @internal */
  readonly runtime?: Runtime;
}

/** One segment, held. */
export interface Segment<Lock extends HeldLock> {
  /** Which one: 0 to segments - 1. Work on this part of the data only. */
  readonly index: number;
  readonly lock: Lock;
}

/** A name split into segments. */
export interface SegmentedLock<Lock extends HeldLock = HeldLock> {
  readonly segments: number;
  /** The segment a key belongs to: the same in every process. */
  segmentOf(key: string): number;
  /** Runs `body` under the segment a key belongs to. */
  withKey<T>(
    key: string,
    options: LockOptions,
    body: (segment: Segment<Lock>) => Promise<T>,
  ): Promise<T>;
  /**
   * Runs `body` under any one segment: of two taken by chance the one this process uses less, which
   * keeps the load even without asking anybody.
   */
  withAny<T>(options: LockOptions, body: (segment: Segment<Lock>) => Promise<T>): Promise<T>;
  /**
   * Runs `body` under all segments, for the rare operation on the whole. They are taken in order
   * within one `waitMs`, so two of these cannot deadlock. Never call it while holding a segment.
   */
  withAll<T>(
    options: LockOptions,
    body: (segments: readonly Segment<Lock>[]) => Promise<T>,
  ): Promise<T>;
}

/**
 * Splits a hot lock name. All bodies end with LOCK_LOST if a lock was lost meanwhile, with BUSY if
 * it was not obtained in time.
 *
 * Not promised: evenness for keys (a hot key makes a hot segment), or the fences of one segment
 * meaning anything for another.
 *
 * @throws OPTION_INVALID before any I/O
 */
export function segmented<Lock extends HeldLock>(
  locks: LockSource<Lock>,
  name: string,
  options: SegmentedOptions,
): SegmentedLock<Lock> {
  knownOptions('segmented()', options, ['segments', 'runtime']);
  if (options.segments === undefined) throw optionError('segments', 'given', undefined);
  const count = integerOption('segments', options.segments, { min: 2, max: 1_024, fallback: 2 });
  checkLockName(`${name}#${count}`);
  const runtime = options.runtime ?? systemRuntime;
  const load = new Array<number>(count).fill(0);

  async function under<T>(
    indexes: readonly number[],
    lockOptions: LockOptions,
    body: (segments: readonly Segment<Lock>[]) => Promise<T>,
  ): Promise<T> {
    functionOption('body', body);
    const endMonoMs = runtime.monoMs() + lockTiming(lockOptions).waitMs;
    const held: Segment<Lock>[] = [];
    for (const index of indexes) load[index] = (load[index] as number) + 1;
    try {
      for (const index of indexes) {
        const waitMs = Math.max(0, Math.ceil(endMonoMs - runtime.monoMs()));
        const lock = await locks.acquire(`${name}#${index}`, { ...lockOptions, waitMs });
        held.push({ index, lock });
      }
      for (const { lock } of held) lock.assertHeld(); // The first may be gone when the last comes.
      const value = await body(held);
      for (const { lock } of held) lock.assertHeld();
      return value;
    } finally {
      for (const index of indexes) load[index] = (load[index] as number) - 1;
      await Promise.all(held.map(({ lock }) => lock.release()));
    }
  }

  const one = <T>(
    index: number,
    lockOptions: LockOptions,
    body: (segment: Segment<Lock>) => Promise<T>,
  ): Promise<T> => under([index], lockOptions, ([segment]) => body(segment as Segment<Lock>));

  const segmentOf = (key: string): number =>
    Number(BigInt.asUintN(64, hash64(key)) % BigInt(count));
  return {
    segments: count,
    segmentOf,
    async withKey(key, lockOptions, body) {
      functionOption('body', body);
      return await one(segmentOf(key), lockOptions, body);
    },
    async withAny(lockOptions, body) {
      functionOption('body', body);
      const first = Math.floor(runtime.random() * count);
      // Never the same twice: the second is one of the others.
      const second = (first + 1 + Math.floor(runtime.random() * (count - 1))) % count;
      const lighter = (load[second] as number) < (load[first] as number) ? second : first;
      return await one(lighter, lockOptions, body);
    },
    async withAll(lockOptions, body) {
      return await under([...load.keys()], lockOptions, body);
    },
  };
}
