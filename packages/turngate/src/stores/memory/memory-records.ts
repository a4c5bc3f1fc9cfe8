/**
 * Records in this process: the readable specification of the record contract, and the store for
 * tests and single-process tools. Nothing survives the process; nothing is shared with another.
 */
import type {
  Attempt,
  Claim,
  RecordAdmin,
  RecordStore,
  StoredRecord,
  Work,
  WorkResult,
} from '../../contract/record-store.ts';
import { TurngateError } from '../../core/errors.ts';
import { integerOption, knownOptions, optionError } from '../../core/option.ts';
import { type RecordId, recordIdText } from '../../core/record-id.ts';
import { type Runtime, systemRuntime } from '../../runtime/runtime.ts';
import { memoryRecordAdmin } from './memory-record-admin.ts';

/** A transaction over plain memory: writes are staged and applied together at commit. */
export interface MemoryTx {
  /** Stages a write. It runs at commit, in order, and must not throw; a rollback forgets it. */
  write(apply: () => void): void;
}

/** Options of {@link memory}. */
export interface MemoryOptions {
  /**
   * How many records may be kept. When it is full, new keys are refused; a live record is never
   * evicted, because its repeat would run again.
   *
   * @unit records, integer, 1 to 10_000_000
   * @default 100_000
   */
  readonly recordsMax?: number;
  /** Clocks for tests. @internal */
  readonly runtime?: Runtime;
}

/** The in-memory record store and its transactions. */
export interface MemoryRecordStore extends RecordStore<MemoryTx> {
  /** A transaction the caller owns, for `operation.within(tx, input)`. */
  transaction<T>(body: (tx: MemoryTx) => Promise<T>): Promise<T>;
}

/** Keeps records in this process. Not durable, not shared: repeats elsewhere run again. */
export function memory(options: MemoryOptions = {}): MemoryRecordStore {
  knownOptions('memory()', options, ['recordsMax', 'runtime']);
  const range = { min: 1, max: 10_000_000, fallback: 100_000 };
  const recordsMax = integerOption('recordsMax', options.recordsMax, range);
  return new MemoryRecords(recordsMax, options.runtime ?? systemRuntime);
}

interface Running {
  readonly fingerprint: string;
  readonly tx: Transaction;
  /** Set when the work is done and only the commit is missing. */
  record?: StoredRecord;
}

class Transaction implements MemoryTx {
  open = true;
  private writes: (() => void)[] = [];
  private endings: ((committed: boolean) => void)[] = [];

  write(apply: () => void): void {
    if (!this.open) throw new TurngateError('TRANSACTION_REQUIRED', 'the transaction has ended');
    this.writes.push(apply);
  }

  onEnd(ending: (committed: boolean) => void): void {
    this.endings.push(ending);
  }

  savepoint(): () => void {
    const kept = this.writes.length;
    return () => {
      this.writes.length = kept;
    };
  }

  end(committed: boolean): void {
    this.open = false;
    if (committed) for (const apply of this.writes) apply();
    for (const ending of this.endings) ending(committed);
  }
}

class MemoryRecords implements MemoryRecordStore {
  readonly name = 'memory';
  readonly capabilities = { atomicWithEffect: true, durable: false, shared: false } as const;
  readonly admin: RecordAdmin;
  private readonly records = new Map<string, StoredRecord>();
  private readonly running = new Map<string, Running>();
  private readonly recordsMax: number;
  private readonly runtime: Runtime;

  constructor(recordsMax: number, runtime: Runtime) {
    this.recordsMax = recordsMax;
    this.runtime = runtime;
    this.admin = memoryRecordAdmin(this.records, runtime);
  }

  async read(id: RecordId): Promise<StoredRecord | undefined> {
    return this.live(recordIdText(id));
  }

  attempt(claim: Claim, work: Work<MemoryTx>): Promise<Attempt> {
    return this.transaction((tx) => this.within(tx, claim, work));
  }

  async transaction<T>(body: (tx: MemoryTx) => Promise<T>): Promise<T> {
    const tx = new Transaction();
    try {
      const value = await body(tx);
      tx.end(true);
      return value;
    } catch (error) {
      if (tx.open) tx.end(false);
      throw error;
    }
  }

  async within(handle: MemoryTx, claim: Claim, work: Work<MemoryTx>): Promise<Attempt> {
    const tx = openTransaction(handle);
    const key = recordIdText(claim.id);
    const seen = this.seen(key, claim);
    // Our own uncommitted work in this transaction counts as a record, as it does in SQL.
    const mine = this.running.get(key);
    if (seen.kind === 'busy' && mine?.tx === tx) {
      if (mine.record !== undefined) return { kind: 'found', record: mine.record };
      throw new TurngateError('OPERATION_NESTED', 'the same key is running in this transaction');
    }
    if (seen.kind !== 'free') return seen;
    const firstProcessedAtMs = this.runtime.wallMs();
    const running: Running = { fingerprint: claim.fingerprint, tx };
    this.running.set(key, running);
    const undo = tx.savepoint();
    let result: WorkResult;
    try {
      result = await work(tx);
      if (result.state === 'refused') undo();
    } catch (error) {
      undo();
      this.running.delete(key);
      throw error;
    }
    const record = recordOf(claim, result, firstProcessedAtMs);
    running.record = record;
    tx.onEnd((committed) => {
      this.running.delete(key);
      if (committed) this.records.set(key, record);
    });
    return { kind: 'ran', record };
  }

  async probe(claim: Claim): Promise<Exclude<Attempt, { kind: 'ran' }> | { kind: 'free' }> {
    return this.seen(recordIdText(claim.id), claim);
  }

  async purge({ batchRows, batches }: { batchRows: number; batches: number }): Promise<number> {
    let purged = 0;
    for (const key of this.records.keys()) {
      if (purged === batchRows * batches) break;
      if (this.live(key) === undefined) purged++;
    }
    return purged;
  }

  private seen(key: string, claim: Claim): Exclude<Attempt, { kind: 'ran' }> | { kind: 'free' } {
    const record = this.live(key);
    if (record !== undefined) return { kind: 'found', record };
    const running = this.running.get(key);
    if (running !== undefined) {
      return { kind: 'busy', sameFingerprint: running.fingerprint === claim.fingerprint };
    }
    if (this.records.size + this.running.size >= this.recordsMax) this.makeRoom();
    return { kind: 'free' };
  }

  private makeRoom(): void {
    for (const key of this.records.keys()) this.live(key);
    if (this.records.size + this.running.size < this.recordsMax) return;
    throw new TurngateError(
      'STORE_UNAVAILABLE',
      `memory store holds ${this.recordsMax} live records`,
    );
  }

  /** The record if it has not expired; an expired one is dropped on sight. */
  private live(key: string): StoredRecord | undefined {
    const record = this.records.get(key);
    if (record === undefined || record.expiresAtMs > this.runtime.wallMs()) return record;
    this.records.delete(key);
    return undefined;
  }
}

function openTransaction(tx: MemoryTx): Transaction {
  if (!(tx instanceof Transaction)) throw optionError('tx', 'a transaction of memory()', tx);
  if (!tx.open) throw new TurngateError('TRANSACTION_REQUIRED', 'the transaction has ended');
  return tx;
}

function recordOf(claim: Claim, result: WorkResult, firstProcessedAtMs: number): StoredRecord {
  const { fingerprint, owner } = claim;
  const expiresAtMs = firstProcessedAtMs + claim.retentionMs;
  return { ...result, fingerprint, owner, firstProcessedAtMs, expiresAtMs };
}
