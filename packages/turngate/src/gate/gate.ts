/** The guarded call: the only place that knows both locks and idempotency. */
import type { LockState, LockStore } from '../contract/lock-store.ts';
import type { RecordStore } from '../contract/record-store.ts';
import type { StagedStore } from '../contract/staged-store.ts';
import { TurngateError } from '../core/errors.ts';
import { functionOption, integerOption, knownOptions, optionError } from '../core/option.ts';
import type { RecordId } from '../core/record-id.ts';
import type { OperationParts } from '../idempotency/attempt-loop.ts';
import { checkDeclaration, type OperationPolicy } from '../idempotency/declaration.ts';
import { lookUp } from '../idempotency/look-up.ts';
import { type CallOptions, OperationRunner } from '../idempotency/operation.ts';
import type { Outcome } from '../idempotency/outcome.ts';
import { OutcomeMemory } from '../idempotency/outcome-memory.ts';
import { RepeatShare } from '../idempotency/repeat-share.ts';
import {
  type SingleWriteDeclaration,
  type SingleWriteOperation,
  SingleWriteRunner,
} from '../idempotency/single-write.ts';
import type { RecoverOptions, Recovery } from '../idempotency/staged/recovery.ts';
import type { StagedDeclaration } from '../idempotency/staged/staged-declaration.ts';
import type { Guard } from '../idempotency/work.ts';
import type { LockStatistics } from '../lock/advice.ts';
import type { AdoptOptions } from '../lock/give-away.ts';
import { LockClient } from '../lock/lock-client.ts';
import type { LockGroup, UnfencedLockGroup } from '../lock/lock-group.ts';
import type { LockHandle, UnfencedLockHandle } from '../lock/lock-handle.ts';
import { checkLockName, type LockOptions, lockTiming } from '../lock/options.ts';
import { type Election, type ElectionOptions, elect } from '../lock/uses/election.ts';
import { attemptIds, type Runtime, systemRuntime } from '../runtime/runtime.ts';
import { waitFor } from '../runtime/wait.ts';
import type { GuardedDeclaration, Operation } from './guarded-operation.ts';
import { StagedGate, type StagedOperation } from './staged-gate.ts';

export type { GuardedDeclaration, Operation } from './guarded-operation.ts';

/** Options of {@link createGate}. */
export interface GateOptions<Tx> {
  /** Where idempotency records live: the database the business writes go to. */
  readonly records: RecordStore<Tx>;
  /** Where locks live. Needed only for `gate.lock`, `gate.acquire` and operations with `lock`. */
  readonly locks?: LockStore;
  /** Where staged operations live. Needed only for `gate.stagedOperation` and `gate.recover`. */
  readonly staged?: StagedStore<Tx>;
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

/** Locks and operations over one set of stores. */
export interface Gate<Tx, Lock = LockHandle, Locks = LockGroup> {
  /** Declares an operation. Each name can be declared once per gate. */
  operation<Input, Value>(
    declaration: GuardedDeclaration<Tx, Input, Value>,
  ): Operation<Tx, Input, Value>;
  /**
   * Declares an operation with effects outside the database, made of recorded steps that any process
   * can go on with.
   */
  stagedOperation<Input, Value>(
    declaration: StagedDeclaration<Tx, Input, Value>,
  ): StagedOperation<Tx, Input, Value>;
  /**
   * Takes up, again and again, what is due among the staged operations declared here: what a dead
   * process left, what was enqueued, what sleeps or failed. `close` ends it.
   */
  recover(options?: RecoverOptions): Recovery;
  /**
   * Declares an operation that is one statement: claim, write and result travel in one trip. About
   * twice as fast as the same inside a transaction; see the guide for what the statement may be.
   *
   * @throws OPTION_INVALID also when the record store cannot do it
   */
  singleWrite<Input, Value>(
    declaration: SingleWriteDeclaration<Input, Value>,
  ): SingleWriteOperation<Input, Value>;
  /**
   * The outcome of work that is finished, undefined where nothing is known. Runs and records nothing; the
   * operation need not be declared in this process.
   *
   * @throws REQUEST_IN_PROGRESS while the work runs, in any process; IDEMPOTENCY_KEY_REUSED; REFUSED;
   *   OPTION_INVALID, IDEMPOTENCY_KEY_INVALID before any I/O
   */
  lookUp(id: RecordId, fingerprint: string): Promise<Outcome<unknown> | undefined>;
  /**
   * Runs `body` under a lock and releases it whatever happens. With several names, under all of them:
   * they are taken in sorted order, all or none, within one `waitMs`.
   */
  lock<T>(name: string, body: (lock: Lock) => Promise<T>): Promise<T>;
  lock<T>(name: string, options: LockOptions, body: (lock: Lock) => Promise<T>): Promise<T>;
  lock<T>(names: readonly string[], body: (locks: Locks) => Promise<T>): Promise<T>;
  lock<T>(
    names: readonly string[],
    options: LockOptions,
    body: (locks: Locks) => Promise<T>,
  ): Promise<T>;
  /** Takes a lock, or several at once, to be released by hand or by `await using`. */
  acquire(names: readonly string[], options?: LockOptions): Promise<Locks>;
  acquire(name: string, options?: LockOptions): Promise<Lock>;
  /**
   * Makes this process a candidate: it works in `onElected` while it leads, and waits for its turn
   * again after a loss. Ends with `resign()`, its signal, or `close()`.
   *
   * @throws OPTION_INVALID
   */
  elect(name: string, options: ElectionOptions): Election;
  /** The live holder of a lock as the store sees it; undefined when free. */
  inspectLock(name: string): Promise<LockState | undefined>;
  /**
   * Takes over a lock that another process gave away with `handle.serialize()`. The store is asked by
   * a renewal; the fence stays the same.
   *
   * @throws LOCK_LOST when the lease has ended or somebody else has the lock
   */
  adopt(text: string, options?: AdoptOptions): Promise<Lock>;
  /**
   * For operators: takes a lock from whoever holds it and from everybody who waits. The holder is
   * told at its next renewal; until then only the fence, which the next holder's exceeds, stops it.
   *
   * @throws OPTION_INVALID where the store cannot do it
   */
  forceReleaseLock(name: string): Promise<'released' | 'free'>;
  /** Hold times measured in this process, of the 256 names used most recently. For metrics. */
  lockStats(): readonly LockStatistics[];
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

/** A gate over a lock store without fences (a Redlock quorum): its locks have none in their type. */
export type UnfencedGate<Tx> = Gate<Tx, UnfencedLockHandle, UnfencedLockGroup>;

/** A lock store that does not number its grants. */
interface Unfenced {
  readonly locks: LockStore & { readonly capabilities: { readonly fencing: 'none' } };
}

/**
 * Opens a gate over a record store and, where locks are needed, a lock store.
 *
 * @throws OPTION_INVALID before any I/O
 */
export function createGate<Tx>(options: GateOptions<Tx> & Unfenced): UnfencedGate<Tx>;
export function createGate<Tx>(options: GateOptions<Tx>): Gate<Tx>;
export function createGate<Tx>(options: GateOptions<Tx>): Gate<Tx> {
  knownOptions('createGate()', options, [
    'records',
    'locks',
    'staged',
    'memoryCharsMax',
    'runtime',
  ]);
  if (typeof options.records?.attempt !== 'function') {
    throw optionError('records', 'a record store, like postgres(pool)', options.records);
  }
  if (options.locks !== undefined && typeof options.locks.tryAcquire !== 'function') {
    throw optionError('locks', 'a lock store, like postgresLocks(pool)', options.locks);
  }
  if (options.staged !== undefined && typeof options.staged.takeOver !== 'function') {
    throw optionError('staged', 'a staged store, like postgresStaged(pool)', options.staged);
  }
  return new OpenGate(options);
}

type LockBody<T> = (lock: LockHandle) => Promise<T>;
type GroupBody<T> = (locks: LockGroup) => Promise<T>;
type EitherBody<T> = LockBody<T> | GroupBody<T>;

class OpenGate<Tx> implements Gate<Tx> {
  private readonly records: RecordStore<Tx>;
  private readonly runtime: Runtime;
  private readonly locks: LockClient | undefined;
  private readonly memory: OutcomeMemory | undefined;
  private readonly staged: StagedGate<Tx> | undefined;
  private readonly closing = new AbortController();
  private readonly nextOwner: () => string;
  private readonly runners = new Map<string, OperationRunner<Tx, never, unknown>>();
  private readonly writers = new Map<string, SingleWriteRunner<never, never>>();
  private readonly policies: OperationPolicy[] = [];
  private readonly elections = new Set<Election>();

  constructor(options: GateOptions<Tx>) {
    this.records = options.records;
    this.runtime = options.runtime ?? systemRuntime;
    const range = { min: 0, max: 1_000_000_000, fallback: 4_000_000 };
    const charsMax = integerOption('memoryCharsMax', options.memoryCharsMax, range);
    this.memory = charsMax === 0 ? undefined : new OutcomeMemory(charsMax, this.runtime);
    this.locks = options.locks && new LockClient(options.locks, this.runtime);
    this.nextOwner = attemptIds(this.runtime);
    const { runtime, memory, nextOwner } = this;
    const lent = { runtime, memory, nextOwner, closing: this.closing.signal };
    this.staged = options.staged && new StagedGate({ ...lent, store: options.staged });
  }

  get operations(): readonly OperationPolicy[] {
    return this.policies;
  }

  get load(): { readonly inFlight: number; readonly locksHeld: number } {
    let inFlight = this.staged?.inFlight ?? 0;
    for (const runner of this.runners.values()) inFlight += runner.inFlight;
    for (const writer of this.writers.values()) inFlight += writer.inFlight;
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
    this.refuseTwice(policy.name);
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

  singleWrite<Input, Value>(
    declaration: SingleWriteDeclaration<Input, Value>,
  ): SingleWriteOperation<Input, Value> {
    const { runtime, nextOwner, memory, records } = this;
    const closing = this.closing.signal;
    const parts = { store: records, runtime, nextOwner, memory, closing };
    this.refuseTwice(declaration.name);
    const runner = new SingleWriteRunner(declaration, parts);
    this.writers.set(runner.policy.name, runner as unknown as SingleWriteRunner<never, never>);
    this.policies.push(runner.policy);
    const call = (input: Input, options?: CallOptions): Promise<Outcome<Value>> =>
      runner.call(input, options);
    return Object.assign(call, { policy: runner.policy });
  }

  stagedOperation<Input, Value>(
    declaration: StagedDeclaration<Tx, Input, Value>,
  ): StagedOperation<Tx, Input, Value> {
    const staged = this.stagedGate('stagedOperation');
    this.refuseTwice(declaration.name);
    const operation = staged.declare(declaration);
    this.policies.push(operation.policy);
    return operation;
  }

  recover(options: RecoverOptions = {}): Recovery {
    return this.stagedGate('recover').recover(options);
  }

  async lookUp(id: RecordId, fingerprint: string): Promise<Outcome<unknown> | undefined> {
    const { records: store, memory, nextOwner, closing } = this;
    const parts = { store, memory, nextOwner, closing: closing.signal };
    return await lookUp(parts, { id, fingerprint }, this.runners.get(id.operation));
  }

  async lock<T>(
    names: string | readonly string[],
    ...rest: [EitherBody<T>] | [LockOptions, EitherBody<T>]
  ): Promise<T> {
    const [options, body] = rest.length === 1 ? [undefined, rest[0]] : rest;
    functionOption('body', body);
    const locks = this.openLocks();
    // The overloads say which body comes with which names.
    if (Array.isArray(names)) return await locks.runAll(names, options, body as GroupBody<T>);
    return await locks.run(names as string, options, body as LockBody<T>);
  }

  acquire(name: string, options?: LockOptions): Promise<LockHandle>;
  acquire(names: readonly string[], options?: LockOptions): Promise<LockGroup>;
  /** No async function: nothing is waited for here, and each of them costs a turn of the loop. */
  acquire(
    names: string | readonly string[],
    options?: LockOptions,
  ): Promise<LockHandle | LockGroup> {
    try {
      const locks = this.openLocks();
      if (Array.isArray(names)) return locks.acquireAll(names, options);
      return locks.acquire(names as string, options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async adopt(text: string, options: AdoptOptions = {}): Promise<LockHandle> {
    return await this.openLocks().adopt(text, options);
  }

  async forceReleaseLock(name: string): Promise<'released' | 'free'> {
    return await this.lockClient('forceReleaseLock').forceRelease(name);
  }

  lockStats(): readonly LockStatistics[] {
    return this.locks?.statistics() ?? [];
  }

  elect(name: string, options: ElectionOptions): Election {
    this.openLocks();
    const { runtime, closing } = this;
    const election = elect(this, name, { runtime, ...options }, closing.signal);
    this.elections.add(election);
    void election.ended.then(() => this.elections.delete(election));
    return election;
  }

  async inspectLock(name: string): Promise<LockState | undefined> {
    return await this.lockClient('inspectLock').inspect(name);
  }

  async close(options: { readonly graceMs?: number } = {}): Promise<void> {
    const range = { min: 0, max: 600_000, fallback: 10_000 };
    const graceMs = integerOption('graceMs', options.graceMs, range);
    this.closing.abort(new TurngateError('GATE_CLOSED', 'the gate is closing'));
    const runners = [...this.runners.values(), ...this.writers.values()];
    const ends = [...runners.map((runner) => runner.idle()), this.staged?.idle()];
    const idle = Promise.all([...ends, ...[...this.elections].map(({ ended }) => ended)]);
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

  private refuseTwice(name: string): void {
    if (![this.runners, this.writers, this.staged].some((known) => known?.has(name))) return;
    throw optionError('operation name', 'declared once per gate', name);
  }

  private stagedGate(what: string): StagedGate<Tx> {
    if (this.staged !== undefined) return this.staged;
    throw new TurngateError('OPTION_INVALID', `${what} needs createGate({ staged: … })`);
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
