/** Staged operations in this process: the readable specification of their contract. */
import type { AlongWith } from '../../contract/record-store.ts';
import type {
  HoldAnswer,
  Leaving,
  Opened,
  StagedClaim,
  StagedFilter,
  StagedHold,
  StagedRecord,
  StagedStep,
  StagedStore,
  StagedVerdict,
  StepResult,
  StepWrite,
  TakenOver,
} from '../../contract/staged-store.ts';
import { type RecordId, recordIdDigest, recordIdText } from '../../core/record-id.ts';
import { type Runtime, systemRuntime } from '../../runtime/runtime.ts';
import type { MemoryRecordStore, MemoryTx } from './memory-records.ts';

interface Step extends Omit<StagedStep, 'dueInMs'> {
  readonly dueAtMs: number | undefined;
}

interface Row extends Omit<StagedRecord, 'dueInMs' | 'expired'> {
  readonly leaseMs: number;
  readonly dueAtMs: number | undefined;
  readonly steps: ReadonlyMap<string, Step>;
}

/** Did its attempt get a step done? */
function hasMoved({ attempt, steps }: Row): boolean {
  return [...steps.values()].some((step) => step.attempt === attempt && step.state !== 'started');
}

/**
 * Keeps staged operations in this process: they survive neither it nor a restart. For tests and
 * single-process tools.
 *
 * @param records the record store whose transactions database steps get
 */
export function memoryStaged(
  records: MemoryRecordStore,
  options: { readonly runtime?: Runtime } = {},
): StagedStore<MemoryTx> {
  return new MemoryStaged(records, options.runtime ?? systemRuntime);
}

const unfinished = ['running', 'waiting', 'sleeping', 'indeterminate'];

class MemoryStaged implements StagedStore<MemoryTx> {
  readonly name = 'memory';
  readonly capabilities = { durable: false, shared: false } as const;
  private readonly rows = new Map<string, Row>();
  /** Between the check of a database step and its commit nobody may take over. */
  private readonly committing = new Set<string>();
  private readonly records: MemoryRecordStore;
  private readonly runtime: Runtime;

  constructor(records: MemoryRecordStore, runtime: Runtime) {
    this.records = records;
    this.runtime = runtime;
  }

  async read(id: RecordId): Promise<StagedRecord | undefined> {
    const row = this.rows.get(recordIdText(id));
    return row && this.seen(row);
  }

  async open(claim: StagedClaim): Promise<Opened> {
    const row = this.rows.get(recordIdText(claim.id));
    if (row !== undefined) return opened(claim, this.seen(row));
    const started = this.started(claim, { state: 'running', attempt: 1, promised: false });
    return { kind: 'claimed', record: this.seen(this.put(started)) };
  }

  async enqueue(tx: MemoryTx, claim: StagedClaim): Promise<Opened> {
    const found = this.rows.get(recordIdText(claim.id));
    if (found !== undefined && !isFree(this.seen(found))) return opened(claim, this.seen(found));
    const attempt = found === undefined ? 0 : found.attempt + 1;
    const row = this.started(claim, { state: 'waiting', attempt, promised: true });
    tx.write(() => void (this.rows.get(recordIdText(claim.id)) === found && this.put(row)));
    return { kind: 'claimed', record: this.seen(row) };
  }

  async takeOver(
    claim: StagedClaim,
    how: { readonly seenAttempt: number; readonly when: 'due' | 'now' | 'fresh' },
  ): Promise<TakenOver | undefined> {
    const key = recordIdText(claim.id);
    const row = this.rows.get(key);
    if (row === undefined || row.attempt !== how.seenAttempt || this.committing.has(key)) {
      return undefined;
    }
    if (!this.mayTake(row, how.when)) return undefined;
    const attempt = row.attempt + 1;
    if (how.when === 'fresh') {
      const fresh = this.started(claim, { state: 'running', attempt, promised: false });
      return this.shown(this.put(fresh));
    }
    const { owner, leaseMs } = claim;
    const crashed = row.state === 'running' && how.when === 'due';
    const failures = crashed ? (hasMoved(row) ? 0 : row.failures) + 1 : row.failures;
    const dueAtMs = this.runtime.wallMs() + leaseMs;
    const steps = adopted(row.steps, attempt);
    const state = 'running';
    return this.shown(
      this.put({ ...row, owner, attempt, failures, state, leaseMs, dueAtMs, steps }),
    );
  }

  async renew(holds: readonly StagedHold[]): Promise<readonly HoldAnswer[]> {
    return holds.map((hold) =>
      this.write(hold, (row) => ({ ...row, dueAtMs: this.runtime.wallMs() + row.leaseMs })),
    );
  }

  async startStep(hold: StagedHold, step: StepWrite, sleepMs?: number): Promise<HoldAnswer> {
    const dueAtMs = sleepMs === undefined ? undefined : this.runtime.wallMs() + sleepMs;
    return this.record(hold, { ...this.stepOf(hold, step), dueAtMs });
  }

  async finishStep(
    hold: StagedHold,
    step: StepWrite,
    result: StepResult,
    started: boolean,
  ): Promise<HoldAnswer> {
    if (!started) return this.record(hold, { ...this.stepOf(hold, step), ...result });
    const old = this.rows.get(recordIdText(hold.id))?.steps.get(step.name);
    if (old === undefined || old.attempt !== hold.attempt) return 'lost';
    if (old.state === 'started') this.putStep(hold, { ...old, ...result });
    return 'ours';
  }

  async dropStep(hold: StagedHold, name: string): Promise<HoldAnswer> {
    return this.write(hold, (row) => ({
      ...row,
      steps: new Map(
        [...row.steps].filter(([key, { state }]) => key !== name || state !== 'started'),
      ),
    }));
  }

  async transactStep(
    hold: StagedHold,
    step: StepWrite,
    work: (tx: MemoryTx) => Promise<string>,
  ): Promise<
    { readonly kind: 'ran' | 'repeated'; readonly result: string } | { readonly kind: 'lost' }
  > {
    const key = recordIdText(hold.id);
    const before = this.rows.get(key)?.steps.get(step.name)?.result;
    if (before !== undefined) return { kind: 'repeated', result: before };
    const undo = new Error('lost');
    try {
      const result = await this.records.transaction(async (tx) => {
        const encoded = await work(tx);
        if (!this.isHeld(hold)) throw undo;
        this.committing.add(key);
        const done: Step = { ...this.stepOf(hold, step), state: 'done', result: encoded };
        tx.write(() => this.putStep(hold, done));
        return encoded;
      });
      return { kind: 'ran', result };
    } catch (error) {
      if (error === undo) return { kind: 'lost' };
      throw error;
    } finally {
      this.committing.delete(key);
    }
  }

  async end(hold: StagedHold, result: StepResult, retentionMs: number): Promise<HoldAnswer> {
    const expiresAtMs = this.runtime.wallMs() + retentionMs;
    const ended = { dueAtMs: undefined, error: undefined, failures: 0, expiresAtMs };
    const answer = this.write(hold, (row) => ({ ...row, ...result, ...ended }));
    return answer === 'ours' ? answer : this.wrote(hold, result.state);
  }

  async leave(hold: StagedHold, leaving: Leaving): Promise<HoldAnswer> {
    const { state, dueInMs, error, failures, retentionMs } = leaving;
    const nowMs = this.runtime.wallMs();
    const answer = this.write(hold, (row) => ({
      ...row,
      state,
      error,
      dueAtMs: dueInMs === undefined ? undefined : nowMs + dueInMs,
      failures,
      promised: row.promised || state === 'sleeping',
      expiresAtMs: state === 'released' ? nowMs + retentionMs : undefined,
    }));
    return answer === 'ours' ? answer : this.wrote(hold, state);
  }

  async due(operations: readonly string[], limit: number): Promise<readonly StagedRecord[]> {
    const due = [...this.rows.values()].filter(
      ({ id, state, dueAtMs = Number.POSITIVE_INFINITY }) =>
        operations.includes(id.operation) &&
        unfinished.includes(state) &&
        dueAtMs <= this.runtime.wallMs(),
    );
    due.sort((a, b) => (a.dueAtMs as number) - (b.dueAtMs as number));
    return due.slice(0, limit).map((row) => this.seen(row));
  }

  async list(
    filter: StagedFilter,
  ): Promise<{ readonly records: readonly StagedRecord[]; readonly cursor: string | undefined }> {
    const { operation, scope, state, after = '', limit } = filter;
    const keyed = [...this.rows.values()]
      .map((row) => ({ row, digest: recordIdDigest(row.id) }))
      .filter(
        ({ row, digest }) =>
          (operation ?? row.id.operation) === row.id.operation &&
          (scope ?? row.id.scope) === row.id.scope &&
          (state ?? row.state) === row.state &&
          digest > after,
      )
      .sort((a, b) => (a.digest < b.digest ? -1 : 1));
    const page = keyed.slice(0, limit);
    const cursor = page.length === limit ? page.at(-1)?.digest : undefined;
    return { records: page.map(({ row }) => this.seen(row)), cursor };
  }

  async inspect(id: RecordId): Promise<TakenOver | undefined> {
    const row = this.rows.get(recordIdText(id));
    return row && this.shown(row);
  }

  async decide(
    id: RecordId,
    verdict: StagedVerdict,
    also?: AlongWith,
  ): Promise<'done' | 'missing' | 'refused'> {
    const row = this.rows.get(recordIdText(id));
    if (row === undefined) return 'missing';
    if (row.state === 'done' || row.state === 'refused') return 'refused';
    let steps = new Map(adopted(row.steps, row.attempt + 1));
    if (verdict.verb === 'happened' || verdict.verb === 'not-happened') {
      const step = steps.get(verdict.step);
      if (step?.state !== 'started') return 'refused';
      if (verdict.verb === 'not-happened') steps.delete(verdict.step);
      else steps.set(verdict.step, { ...step, state: 'done', result: verdict.result });
    }
    const nowMs = this.runtime.wallMs();
    const freed = verdict.verb === 'release';
    if (freed) steps = new Map();
    const state = freed ? 'released' : verdict.verb === 'park' ? 'parked' : 'waiting';
    const attempt = row.attempt + 1;
    const dueAtMs = state === 'waiting' ? nowMs : undefined;
    const expiresAtMs = freed ? nowMs + 86_400_000 : undefined;
    const promised = row.promised || state === 'waiting';
    const changed = { state, attempt, dueAtMs, expiresAtMs, promised, steps } as const;
    if (also !== undefined) {
      await also(undefined);
      // Moved on meanwhile: what it is now decides.
      if (this.rows.get(recordIdText(id)) !== row) return await this.decide(id, verdict);
    }
    this.put({ ...row, ...changed, owner: 'operator', failures: 0 });
    return 'done';
  }

  async purge({ batchRows, batches }: { batchRows: number; batches: number }): Promise<number> {
    let purged = 0;
    for (const [key, row] of this.rows) {
      if (purged === batchRows * batches) break;
      const { expiresAtMs = Number.POSITIVE_INFINITY } = row;
      if (expiresAtMs <= this.runtime.wallMs() && this.rows.delete(key)) purged++;
    }
    return purged;
  }

  private mayTake(row: Row, when: 'due' | 'now' | 'fresh'): boolean {
    if (when === 'fresh') return isFree(this.seen(row));
    if (when === 'now') return row.state === 'waiting';
    const { dueAtMs = Number.POSITIVE_INFINITY } = row;
    return unfinished.includes(row.state) && dueAtMs <= this.runtime.wallMs();
  }

  private started(
    { id, fingerprint, input, owner, leaseMs }: StagedClaim,
    how: Pick<Row, 'state' | 'attempt' | 'promised'>,
  ): Row {
    const nowMs = this.runtime.wallMs();
    return {
      id,
      fingerprint,
      input,
      owner,
      leaseMs,
      ...how,
      failures: 0,
      result: undefined,
      error: undefined,
      dueAtMs: how.state === 'running' ? nowMs + leaseMs : nowMs,
      startedAtMs: nowMs,
      expiresAtMs: undefined,
      steps: new Map(),
    };
  }

  private isHeld({ id, owner, attempt }: StagedHold): boolean {
    const row = this.rows.get(recordIdText(id));
    return row?.owner === owner && row.attempt === attempt && row.state === 'running';
  }

  private write(hold: StagedHold, change: (row: Row) => Row): HoldAnswer {
    if (!this.isHeld(hold)) return 'lost';
    this.put(change(this.rows.get(recordIdText(hold.id)) as Row));
    return 'ours';
  }

  /** After a write that touched nothing: had an earlier try of the same hold written it? */
  private wrote({ id, owner, attempt }: StagedHold, state: string): HoldAnswer {
    const row = this.rows.get(recordIdText(id));
    const ours = row?.owner === owner && row.attempt === attempt;
    return ours && row.state === state ? 'ours' : 'lost';
  }

  private record(hold: StagedHold, step: Step): HoldAnswer {
    if (!this.isHeld(hold)) return 'lost';
    const row = this.rows.get(recordIdText(hold.id)) as Row;
    if (!row.steps.has(step.name)) this.putStep(hold, step);
    return 'ours';
  }

  private putStep(hold: StagedHold, step: Step): void {
    const row = this.rows.get(recordIdText(hold.id)) as Row;
    this.put({ ...row, steps: new Map([...row.steps, [step.name, step]]) });
  }

  private stepOf(hold: StagedHold, step: StepWrite): Step {
    const { attempt } = hold;
    const startedAtMs = this.runtime.wallMs();
    const open = { state: 'started', result: undefined, dueAtMs: undefined } as const;
    return { ...step, ...open, attempt, startedAtMs };
  }

  private put(row: Row): Row {
    this.rows.set(recordIdText(row.id), row);
    return row;
  }

  private seen({ steps: _steps, leaseMs: _leaseMs, dueAtMs, ...row }: Row): StagedRecord {
    const nowMs = this.runtime.wallMs();
    const finished = row.state === 'done' || row.state === 'refused';
    const expired = finished && row.expiresAtMs !== undefined && row.expiresAtMs <= nowMs;
    return { ...row, expired, dueInMs: dueAtMs === undefined ? undefined : dueAtMs - nowMs };
  }

  private shown(row: Row): TakenOver {
    const nowMs = this.runtime.wallMs();
    const steps = [...row.steps.values()]
      .map(({ dueAtMs, ...step }) => ({
        ...step,
        dueInMs: dueAtMs === undefined ? undefined : dueAtMs - nowMs,
      }))
      .sort((a, b) => a.seq - b.seq);
    return { record: this.seen(row), steps };
  }
}

function opened(claim: StagedClaim, record: StagedRecord): Opened {
  return { kind: record.owner === claim.owner ? 'claimed' : 'found', record };
}

function isFree({ state, expired }: StagedRecord): boolean {
  return state === 'released' || expired;
}

/** Steps without a result belong to the newest attempt, so that the one before writes nothing. */
function adopted(steps: ReadonlyMap<string, Step>, attempt: number): ReadonlyMap<string, Step> {
  const entries = [...steps].map(
    ([name, step]) => [name, step.state === 'started' ? { ...step, attempt } : step] as const,
  );
  return new Map(entries);
}
