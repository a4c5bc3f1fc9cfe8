/** Finishes what others left: a sweep over what is due among the operations declared here. */
import type { StagedRecord, StagedStore } from '../../contract/staged-store.ts';
import { integerOption, knownOptions } from '../../core/option.ts';
import { emit, listened } from '../../runtime/events.ts';
import { Rounds } from '../../runtime/rounds.ts';
import type { Runtime } from '../../runtime/runtime.ts';

/** Options of `gate.recover`. */
export interface RecoverOptions {
  /**
   * Pause between two sweeps, jittered by a quarter. An abandoned operation goes on at most its lease
   * and this pause after its process died.
   *
   * @unit milliseconds, integer, 50 to 3_600_000
   * @default 5_000
   */
  readonly everyMs?: number;
  /**
   * How many are looked up in one sweep; a full one is followed by the next at once.
   *
   * @unit operations, integer, 1 to 1_000
   * @default 20
   */
  readonly batch?: number;
  /**
   * How many run at once in this process.
   *
   * @unit operations, integer, 1 to 100
   * @default 4
   */
  readonly concurrency?: number;
}

/** A sweeper at work. */
export interface Recovery {
  /** Sweeps now; resolves with how many were taken up, when they have ended. */
  sweep(): Promise<number>;
  /** Takes up nothing more and waits for what it runs. */
  stop(): Promise<void>;
}

/** What the sweeper needs of the gate. */
export interface RecoveryParts {
  readonly store: StagedStore<never>;
  readonly runtime: Runtime;
  readonly operations: () => readonly string[];
  readonly recover: (record: StagedRecord) => Promise<boolean>;
}

/** @throws OPTION_INVALID */
export function startRecovery(parts: RecoveryParts, options: RecoverOptions): Recovery {
  knownOptions('recover()', options, ['everyMs', 'batch', 'concurrency']);
  const { everyMs, batch, concurrency } = options;
  const rules = {
    everyMs: integerOption('everyMs', everyMs, { min: 50, max: 3_600_000, fallback: 5_000 }),
    batch: integerOption('batch', batch, { min: 1, max: 1_000, fallback: 20 }),
    concurrency: integerOption('concurrency', concurrency, { min: 1, max: 100, fallback: 4 }),
  };
  return new Sweeper(parts, rules);
}

class Sweeper implements Recovery {
  private readonly parts: RecoveryParts;
  private readonly rules: Required<RecoverOptions>;
  private readonly rounds: Rounds;

  constructor(parts: RecoveryParts, rules: Required<RecoverOptions>) {
    this.parts = parts;
    this.rules = rules;
    this.rounds = new Rounds({
      runtime: parts.runtime,
      everyMs: rules.everyMs,
      round: (stopped) => this.sweepAll(stopped),
      onFailure: tellFailed,
    });
  }

  sweep(): Promise<number> {
    return this.rounds.now();
  }

  stop(): Promise<void> {
    return this.rounds.stop();
  }

  private async sweepAll(stopped: () => boolean): Promise<number> {
    const { store, operations } = this.parts;
    const { batch } = this.rules;
    let taken = 0;
    while (!stopped()) {
      const due = await store.due(operations(), batch);
      const here = await this.runAll(this.shuffled(due), stopped);
      taken += here;
      // Where nothing could be taken, others work on the same rows: leave them to it.
      if (due.length < batch || here === 0) break;
    }
    return taken;
  }

  private async runAll(due: readonly StagedRecord[], stopped: () => boolean): Promise<number> {
    const queue = [...due];
    let taken = 0;
    const worker = async (): Promise<void> => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        if (stopped()) return;
        if (await this.parts.recover(next)) taken++;
      }
    };
    await Promise.all(Array.from({ length: this.rules.concurrency }, worker));
    return taken;
  }

  /** Several processes that sweep at once start at different ends. */
  private shuffled(due: readonly StagedRecord[]): readonly StagedRecord[] {
    const { runtime } = this.parts;
    const keyed = due.map((record) => ({ record, at: runtime.random() }));
    return keyed.sort((a, b) => a.at - b.at).map(({ record }) => record);
  }
}

function tellFailed(error: unknown): void {
  if (!listened('staged')) return;
  const nobody = { operation: '', scope: '', key: '', attempt: 0 };
  emit('staged', { ...nobody, type: 'sweep-failed', error });
}
