/** The gate's staged operations: their runners, their leases, their recovery. */
import type { StagedStore } from '../contract/staged-store.ts';
import { TurngateError } from '../core/errors.ts';
import type { CallOptions } from '../idempotency/flights.ts';
import type { Outcome } from '../idempotency/outcome.ts';
import type { OutcomeMemory } from '../idempotency/outcome-memory.ts';
import { RepeatShare } from '../idempotency/repeat-share.ts';
import { Leases } from '../idempotency/staged/lease.ts';
import {
  type RecoverOptions,
  type Recovery,
  startRecovery,
} from '../idempotency/staged/recovery.ts';
import {
  checkStaged,
  type StagedDeclaration,
  type StagedPolicy,
} from '../idempotency/staged/staged-declaration.ts';
import { StagedRunner } from '../idempotency/staged/staged-runner.ts';
import type { Runtime } from '../runtime/runtime.ts';

/** A declared staged operation: call it, or record it in a transaction you own. */
export interface StagedOperation<Tx, Input, Value> {
  /**
   * Does the work once per key; every repeat gets the first result, and a repeat of work that was
   * interrupted goes on after the recorded steps.
   *
   * Not promised: that an external step runs once. Its provider sees one key over all attempts, and a
   * step whose provider has no keys is never repeated without a resolver's or an operator's word.
   *
   * @throws what the handler throws, when nothing outside had begun; otherwise OUTCOME_UNKNOWN,
   *   OPERATION_PARKED or LEASE_LOST: then ask again with the same key, never with a new one
   */
  (input: Input, options?: CallOptions): Promise<Outcome<Value>>;
  /**
   * Records the operation in your open transaction: once that commits, `recover` (here or in another
   * process) runs it, or the next call with the key. `known`: it was recorded before.
   */
  enqueue(tx: Tx, input: Input): Promise<'accepted' | 'known'>;
  /** The declaration as checked, for documentation and metrics. */
  readonly policy: StagedPolicy;
}

/** What the gate lends. */
export interface StagedGateParts<Tx> {
  readonly store: StagedStore<Tx>;
  readonly runtime: Runtime;
  readonly closing: AbortSignal;
  readonly nextOwner: () => string;
  readonly memory: OutcomeMemory | undefined;
}

/** Staged operations of one gate. */
export class StagedGate<Tx> {
  private readonly parts: StagedGateParts<Tx>;
  private readonly leases: Leases;
  private readonly runners = new Map<string, StagedRunner<Tx, unknown, unknown>>();
  private readonly recoveries = new Set<Recovery>();

  constructor(parts: StagedGateParts<Tx>) {
    this.parts = parts;
    this.leases = new Leases(parts.runtime, (holds) => parts.store.renew(holds));
  }

  get inFlight(): number {
    let inFlight = 0;
    for (const { flights } of this.runners.values()) inFlight += flights.inFlight;
    return inFlight;
  }

  has(name: string): boolean {
    return this.runners.has(name);
  }

  declare<Input, Value>(
    declaration: StagedDeclaration<Tx, Input, Value>,
  ): StagedOperation<Tx, Input, Value> {
    const policy = checkStaged(declaration);
    const recovers = (): boolean => this.recoveries.size > 0;
    const own = { declaration, policy, leases: this.leases, recovers };
    const runner = new StagedRunner<Tx, Input, Value>({
      ...this.parts,
      ...own,
      repeatShare: new RepeatShare(),
    });
    this.runners.set(policy.name, runner as unknown as StagedRunner<Tx, unknown, unknown>);
    const call = (input: Input, options?: CallOptions): Promise<Outcome<Value>> =>
      runner.call(input, options);
    const enqueue = (tx: Tx, input: Input): Promise<'accepted' | 'known'> =>
      runner.enqueue(tx, input);
    return Object.assign(call, { enqueue, policy });
  }

  recover(options: RecoverOptions): Recovery {
    const { store, runtime, closing } = this.parts;
    if (closing.aborted) throw new TurngateError('GATE_CLOSED', 'the gate is closed');
    const sweeper = startRecovery(
      {
        store: store as StagedStore<never>,
        runtime,
        operations: () => [...this.runners.keys()],
        recover: async (record) =>
          (await this.runners.get(record.id.operation)?.recover(record)) ?? false,
      },
      options,
    );
    this.recoveries.add(sweeper);
    const stop = async (): Promise<void> => {
      this.recoveries.delete(sweeper);
      await sweeper.stop();
    };
    return { sweep: () => sweeper.sweep(), stop };
  }

  /** Ends the sweeping and waits for what runs. */
  async idle(): Promise<void> {
    await Promise.all([...this.recoveries].map((recovery) => recovery.stop()));
    this.recoveries.clear();
    await Promise.all([...this.runners.values()].map(({ flights }) => flights.idle()));
  }
}
