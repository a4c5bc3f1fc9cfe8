/** The guarded call: the only place that knows both locks and idempotency. */
import type { LockState, LockStore } from '../contract/lock-store.ts';
import type { RecordStore } from '../contract/record-store.ts';
import { TurngateError } from '../core/errors.ts';
import { functionOption, integerOption, knownOptions, optionError } from '../core/option.ts';
import type { OperationParts } from '../idempotency/attempt-loop.ts';
import {
  checkDeclaration,
  type OperationDeclaration,
  type OperationPolicy,
} from '../idempotency/declaration.ts';
import { type CallOptions, OperationRunner } from '../idempotency/operation.ts';
import type { Outcome } from '../idempotency/outcome.ts';
import { OutcomeMemory } from '../idempotency/outcome-memory.ts';
import { RepeatShare } from '../idempotency/repeat-share.ts';
import type { Guard } from '../idempotency/work.ts';
import { LockClient } from '../lock/lock-client.ts';
import type { LockHandle } from '../lock/lock-handle.ts';
import { checkLockName, type LockOptions, lockTiming } from '../lock/options.ts';
import { attemptIds, type Runtime, systemRuntime } from '../runtime/runtime.ts';
import { waitFor } from '../runtime/wait.ts';

/** Options of {@link createGate}. */
export interface GateOptions<Tx> {
  /** Where idempotency records live: the database the business writes go to. */
  readonly records: RecordStore<Tx>;
  /** Where locks live. Needed only for `gate.lock`, `gate.acquire` and operations with `lock`. */
  readonly locks?: LockStore;
  /**
   * How many characters of finished results this process remembers, so that a repeat costs no trip.
   * 0 switches it off; the guarantees are the same.
   *
   * @unit characters, integer, 0 to 1_000_000_000
   * @default 4_000_000
   */
  readonly memoryCharsMax?: number;
  /** Clocks, timers and chance for tests. @internal */
  readonly runtime?: Runtime;
}

/** An operation's declaration with the part only the gate understands. */
export interface GuardedDeclaration<Tx, Input, Value>
  extends OperationDeclaration<Tx, Input, Value> {
  /**
   * The lock the work runs under: only where *different* requests compete. Repeats of one request
   * need none. Not used by `within`, whose commit is not ours: lock around your transaction there.
   */
  readonly lock?: (input: Input) => string;
  /** Lease, wait and renewal of that lock. */
  readonly lockOptions?: Omit<LockOptions, 'signal' | 'onReentry'>;
}

/** A declared operation: call it, or run it inside a transaction you own. */
export interface Operation<Tx, Input, Value> {
  /**
   * Does the work once per key; every repeat gets the first result.
   *
   * Not promised: effects outside `tx`. An email sent by the handler can be sent again after a
   * rollback.
   */
  (input: Input, options?: CallOptions): Promise<Outcome<Value>>;
  /**
   * The same inside your open transaction: claim, effect and result commit or roll back with it.
   * Make it the first thing the transaction does, at READ COMMITTED. While another transaction works
   * on the key, it waits on *your* connection, at most `waitMs`.
   */
  within(tx: Tx, input: Input): Promise<Outcome<Value>>;
  /** The declaration as checked, for documentation and metrics. */
  readonly policy: OperationPolicy & { readonly locked: boolean };
}

/** Locks and operations over one set of stores. */
export interface Gate<Tx> {
  /** Declares an operation. Each name can be declared once per gate. */
  operation<Input, Value>(
    declaration: GuardedDeclaration<Tx, Input, Value>,
  ): Operation<Tx, Input, Value>;
  /** Runs `body` under a lock and releases it whatever happens. */
  lock<T>(name: string, body: (lock: LockHandle) => Promise<T>): Promise<T>;
  lock<T>(name: string, options: LockOptions, body: (lock: LockHandle) => Promise<T>): Promise<T>;
  /** Takes a lock to be released by hand or by `await using`. */
  acquire(name: string, options?: LockOptions): Promise<LockHandle>;
  /** The live holder of a lock as the store sees it; undefined when free. */
  inspectLock(name: string): Promise<LockState | undefined>;
  /** All operations declared so far. */
  readonly operations: readonly OperationPolicy[];
  /** How many calls are being worked on right now, and how many locks are held. */
  readonly load: { readonly inFlight: number; readonly locksHeld: number };
  /**
   * Refuses new work with GATE_CLOSED and waits for what runs. The clients you passed in stay open:
   * whoever made them ends them.
   */
  close(options?: { readonly graceMs?: number }): Promise<void>;
}

/**
 * Opens a gate over a record store and, where locks are needed, a lock store.
 *
 * @throws OPTION_INVALID before any I/O
 */
export function createGate<Tx>(options: GateOptions<Tx>): Gate<Tx> {
  knownOptions('createGate()', options, ['records', 'locks', 'memoryCharsMax', 'runtime']);
  if (typeof options.records?.attempt !== 'function') {
    throw optionError('records', 'a record store, like postgres(pool)', options.records);
  }
  if (options.locks !== undefined && typeof options.locks.tryAcquire !== 'function') {
    throw optionError('locks', 'a lock store, like postgresLocks(pool)', options.locks);
  }
  return new OpenGate(options);
}

class OpenGate<Tx> implements Gate<Tx> {
  private readonly records: RecordStore<Tx>;
  private readonly runtime: Runtime;
  private readonly locks: LockClient | undefined;
  private readonly memory: OutcomeMemory | undefined;
  private readonly closing = new AbortController();
  private readonly nextOwner: () => string;
  private readonly runners = new Map<string, OperationRunner<Tx, never, unknown>>();
  private readonly policies: OperationPolicy[] = [];

  constructor(options: GateOptions<Tx>) {
    this.records = options.records;
    this.runtime = options.runtime ?? systemRuntime;
    const range = { min: 0, max: 1_000_000_000, fallback: 4_000_000 };
    const charsMax = integerOption('memoryCharsMax', options.memoryCharsMax, range);
    this.memory = charsMax === 0 ? undefined : new OutcomeMemory(charsMax, this.runtime);
    this.locks = options.locks && new LockClient(options.locks, this.runtime);
    this.nextOwner = attemptIds(this.runtime);
  }

  get operations(): readonly OperationPolicy[] {
    return this.policies;
  }

  get load(): { readonly inFlight: number; readonly locksHeld: number } {
    let inFlight = 0;
    for (const runner of this.runners.values()) inFlight += runner.inFlight;
    return { inFlight, locksHeld: this.locks?.heldCount ?? 0 };
  }

  operation<Input, Value>(
    declaration: GuardedDeclaration<Tx, Input, Value>,
  ): Operation<Tx, Input, Value> {
    const { lock, lockOptions, ...plain } = declaration;
    const policy = { ...checkDeclaration(plain), locked: lock !== undefined };
    if (lock === undefined && lockOptions !== undefined) {
      throw optionError('lockOptions', 'given together with lock', lockOptions);
    }
    if (this.runners.has(policy.name)) {
      throw optionError('operation name', 'declared once per gate', policy.name);
    }
    const parts: OperationParts<Tx, Input, Value> = {
      declaration: plain,
      policy,
      store: this.records,
      runtime: this.runtime,
      nextOwner: this.nextOwner,
      closing: this.closing.signal,
      repeatShare: new RepeatShare(),
      enter: lock && this.entrance(policy.name, lock, lockOptions ?? {}),
    };
    const runner = new OperationRunner(parts, this.memory);
    this.runners.set(policy.name, runner as unknown as OperationRunner<Tx, never, unknown>);
    this.policies.push(policy);
    const call = (input: Input, options?: CallOptions): Promise<Outcome<Value>> =>
      runner.call(input, options);
    const within = (tx: Tx, input: Input): Promise<Outcome<Value>> => runner.within(tx, input);
    return Object.assign(call, { within, policy });
  }

  async lock<T>(
    name: string,
    ...rest: [(lock: LockHandle) => Promise<T>] | [LockOptions, (lock: LockHandle) => Promise<T>]
  ): Promise<T> {
    const [options, body] = rest.length === 1 ? [{}, rest[0]] : rest;
    functionOption('body', body);
    return await this.openLocks().run(name, options, body);
  }

  async acquire(name: string, options: LockOptions = {}): Promise<LockHandle> {
    return await this.openLocks().acquire(name, options);
  }

  async inspectLock(name: string): Promise<LockState | undefined> {
    return await this.lockClient('inspectLock').inspect(name);
  }

  async close(options: { readonly graceMs?: number } = {}): Promise<void> {
    const range = { min: 0, max: 600_000, fallback: 10_000 };
    const graceMs = integerOption('graceMs', options.graceMs, range);
    this.closing.abort(new TurngateError('GATE_CLOSED', 'the gate is closing'));
    const idle = Promise.all([...this.runners.values()].map((runner) => runner.idle()));
    const late = new Error('still running');
    await waitFor(this.runtime, idle, { limitMs: graceMs, onCut: () => late }).catch(
      () => undefined,
    );
  }

  private entrance<Input>(
    operation: string,
    lock: (input: Input) => string,
    options: Omit<LockOptions, 'signal' | 'onReentry'>,
  ): (input: Input, waitMs: number) => Promise<Guard> {
    functionOption('lock', lock);
    const locks = this.lockClient(`operation "${operation}" with a lock`);
    const timing = lockTiming(options);
    return async (input, waitMs) => {
      const name = checkLockName(lock(input));
      return await locks.acquire(name, {
        ...options,
        waitMs: Math.min(timing.waitMs, Math.ceil(waitMs)),
      });
    };
  }

  private openLocks(): LockClient {
    if (this.closing.signal.aborted) throw new TurngateError('GATE_CLOSED', 'the gate is closed');
    return this.lockClient('a lock');
  }

  private lockClient(what: string): LockClient {
    if (this.locks !== undefined) return this.locks;
    throw new TurngateError('OPTION_INVALID', `${what} needs createGate({ locks: … })`);
  }
}
