/** A memory store between "processes" (gates), with traffic that can be counted, held up and failed. */
import type {
  LockAnswer,
  LockAttempt,
  LockCapabilities,
  LockGrant,
  LockGranted,
  LockState,
  LockStore,
} from '../../src/contract/index.ts';
import { createGate, type Gate } from '../../src/index.ts';
import { memory, memoryLocks } from '../../src/stores/memory/index.ts';
import { ManualRuntime } from '../support/clock.ts';

type Verb = 'tryAcquire' | 'renew' | 'release' | 'pass';

/** The memory store behind a network one can break. */
export class FarLocks implements LockStore {
  readonly name = 'far';
  readonly inner: LockStore;
  readonly capabilities: LockCapabilities;
  /** Every command that was sent, in order. */
  readonly sent: Verb[] = [];
  readonly tries: LockAttempt[] = [];
  readonly batches: number[] = [];
  /** Errors to throw before the store is reached; a verb's are used up one by one. */
  readonly errors = new Map<Verb, Error[]>();
  down = false;
  /** Answers wait for this. */
  answersAfter: Promise<unknown> = Promise.resolve();
  pushesLost = false;
  watching = 0;
  pass?: NonNullable<LockStore['pass']>;
  watch?: NonNullable<LockStore['watch']>;

  constructor(
    runtime?: ManualRuntime,
    options: {
      readonly poll?: boolean;
      readonly noPass?: boolean;
      readonly noQueue?: boolean;
      readonly noFence?: boolean;
    } = {},
  ) {
    this.inner = memoryLocks(runtime === undefined ? {} : { runtime });
    this.capabilities = {
      ...this.inner.capabilities,
      wakeup: options.poll ? 'poll' : 'push',
      fencing: options.noFence ? 'none' : 'process',
      fairness: options.noQueue ? 'none' : 'fifo',
    };
    if (!options.noPass) this.pass = (attempt, next) => this.sendPass(attempt, next);
    if (!options.poll) this.watch = (attempt, onPush) => this.listen(attempt, onPush);
  }

  get commands(): number {
    return this.sent.length;
  }

  count(verb: Verb): number {
    return this.sent.filter((sent) => sent === verb).length;
  }

  reset(): void {
    this.sent.length = 0;
    this.tries.length = 0;
    this.batches.length = 0;
  }

  async tryAcquire(attempt: LockAttempt): Promise<LockGrant> {
    this.tries.push(attempt);
    return await this.send('tryAcquire', () => this.inner.tryAcquire(attempt));
  }

  async renew(attempts: readonly LockAttempt[]): Promise<readonly LockAnswer[]> {
    this.batches.push(attempts.length);
    return await this.send('renew', () => this.inner.renew(attempts));
  }

  async release(attempt: LockAttempt): Promise<LockAnswer> {
    return await this.send('release', () => this.inner.release(attempt));
  }

  async inspect(name: string): Promise<LockState | undefined> {
    if (this.down) throw new Error('store is down');
    return await this.inner.inspect(name);
  }

  async forceRelease(name: string): Promise<'released' | 'free'> {
    return (await this.inner.forceRelease?.(name)) as 'released' | 'free';
  }

  private sendPass(
    attempt: LockAttempt,
    next: LockAttempt,
  ): Promise<{ answer: LockAnswer; grant: LockGrant }> {
    this.tries.push(next);
    return this.send('pass', () =>
      (this.inner.pass as NonNullable<LockStore['pass']>)(attempt, next),
    );
  }

  private listen(attempt: LockAttempt, onPush: (granted?: LockGranted) => void): () => void {
    this.watching++;
    const end = this.inner.watch?.(attempt, (granted) => {
      if (!this.pushesLost) onPush(granted);
    });
    return () => {
      this.watching--;
      end?.();
    };
  }

  private async send<T>(verb: Verb, call: () => Promise<T>): Promise<T> {
    this.sent.push(verb);
    if (this.down) throw new Error('store is down');
    const error = this.errors.get(verb)?.shift();
    if (error !== undefined) throw error;
    const answer = await call();
    await this.answersAfter;
    return answer;
  }
}

/** Several processes over one store, on a clock of their own. */
export function setUp(options: ConstructorParameters<typeof FarLocks>[1] = {}): {
  runtime: ManualRuntime;
  locks: FarLocks;
  gate: Gate<unknown>;
  other: Gate<unknown>;
  third: Gate<unknown>;
} {
  const runtime = new ManualRuntime();
  const locks = new FarLocks(runtime, options);
  const open = (): Gate<unknown> =>
    createGate({ records: memory({ runtime }), locks, runtime }) as Gate<unknown>;
  return { runtime, locks, gate: open(), other: open(), third: open() };
}

/** Chance that can be repeated: the seed is in the name of the test that uses it. */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Did it settle yet? */
export function settled(promise: Promise<unknown>): () => boolean {
  let done = false;
  promise.then(
    () => {
      done = true;
    },
    () => {
      done = true;
    },
  );
  return () => done;
}
