/** Runs jobs: every node may, the row of the period decides which one does. */
import type { SqlDatabase } from '../contract/sql-session.ts';
import { TurngateError } from '../core/errors.ts';
import { integerOption } from '../core/option.ts';
import { emit } from '../runtime/events.ts';
import { attemptIds, type Runtime, systemRuntime, type Timer } from '../runtime/runtime.ts';
import { waitFor } from '../runtime/wait.ts';
import type { Job } from './declaration.ts';
import { JobStore, type Run } from './job-store.ts';
import type { Period } from './schedule.ts';

/** How one try at a period ended. `taken`: done before, running elsewhere, or to be tried later. */
export type RunResult = 'ran' | 'failed' | 'taken' | 'lost';

/** Jobs of one database. */
export interface JobRunner {
  /** One round over all jobs: runs what is due and free. Also what {@link start} does, in a loop. */
  tick(): Promise<void>;
  /** Tries one period, whatever the schedule says. */
  run(job: Job, period: Period): Promise<RunResult>;
  /**
   * Looks for due periods again and again until stopped.
   *
   * @unit everyMs: milliseconds, integer, 100 to 3_600_000; default 5_000
   */
  start(everyMs?: number): void;
  /** Ends the loop, tells running jobs by their signal, waits for them. */
  stop(): Promise<void>;
}

/**
 * Creates a runner. Every node runs one; there is no leader to lose. Lead by `gate.elect` if the
 * idle questions of many nodes are too many for the database.
 */
export function createJobRunner(
  database: SqlDatabase,
  jobs: readonly Job[],
  options: { readonly runtime?: Runtime } = {},
): JobRunner {
  return new Runner(new JobStore(database), jobs, options.runtime ?? systemRuntime);
}

class Runner implements JobRunner {
  private readonly store: JobStore;
  private readonly jobs: readonly Job[];
  private readonly runtime: Runtime;
  private readonly nextOwner: () => string;
  private readonly running = new Map<
    string,
    { readonly stop: AbortController; readonly ended: Promise<unknown> }
  >();
  private timer: Timer | undefined;
  private ticking: Promise<void> | undefined;
  private stopped = false;

  constructor(store: JobStore, jobs: readonly Job[], runtime: Runtime) {
    this.store = store;
    this.jobs = jobs;
    this.runtime = runtime;
    this.nextOwner = attemptIds(runtime);
  }

  async tick(): Promise<void> {
    await Promise.all(
      this.jobs.map(async (job) => {
        try {
          for (const period of await this.due(job)) await this.run(job, period);
        } catch (error) {
          emit('job', { type: 'unavailable', job: job.name, error });
        }
      }),
    );
  }

  async run(job: Job, period: Period): Promise<RunResult> {
    const run = await this.store.claim(job, period, this.nextOwner());
    if (run === undefined) return 'taken';
    const stop = new AbortController();
    const ended = this.work(job, period, run, stop);
    this.running.set(run.owner, { stop, ended });
    try {
      return await ended;
    } finally {
      this.running.delete(run.owner);
    }
  }

  start(everyMs?: number): void {
    const pauseMs = integerOption('everyMs', everyMs, {
      min: 100,
      max: 3_600_000,
      fallback: 5_000,
    });
    const round = (): void => {
      this.ticking = this.tick().then(() => {
        // Jitter, so that nodes started together do not ask together for ever.
        const delayMs = pauseMs * (0.75 + this.runtime.random() / 2);
        if (!this.stopped) this.timer = this.runtime.timer(delayMs, false, round);
      });
    };
    if (this.ticking === undefined) round();
  }

  async stop(): Promise<void> {
    this.stopped = true;
    this.timer?.cancel();
    const reason = new TurngateError('ABORTED', 'the job runner stops');
    for (const { stop } of this.running.values()) stop.abort(reason);
    await this.ticking;
    await Promise.allSettled([...this.running.values()].map(({ ended }) => ended));
  }

  /** Periods that are due and not done, oldest first. */
  private async due(job: Job): Promise<readonly Period[]> {
    const { nowMs, sinceMs } = await this.store.clock(job.name);
    let period = job.calendar.latest(nowMs);
    const late = nowMs - period.dueMs;
    if (job.catchUp === 'skip' && late > job.graceMs) return [];
    const found: Period[] = [];
    for (let i = 0; i < (job.catchUp === 'all' ? job.catchUpMax : 1); i++) {
      if (period.dueMs < sinceMs) break;
      const state = await this.store.state(job.name, period.label);
      if (state === 'done') break; // Older ones were made up for before this one was done.
      found.unshift(period);
      period = job.calendar.before(period);
    }
    return found;
  }

  private async work(
    job: Job,
    period: Period,
    run: Run,
    stop: AbortController,
  ): Promise<RunResult> {
    const { name } = job;
    const heartbeat = this.heartbeat(job, run, stop);
    let completed = false;
    emit('job', { type: 'started', job: name, period: period.label, fence: run.fence });
    try {
      await job.run({
        period,
        fence: run.fence,
        signal: stop.signal,
        completeIn: async (sql) => {
          await this.store.complete(run, sql);
          completed = true;
        },
      });
      if (!completed) await this.store.complete(run);
      emit('job', { type: 'done', job: name, period: period.label, fence: run.fence });
      return 'ran';
    } catch (error) {
      emit('job', { type: 'failed', job: name, period: period.label, error });
      // A mark that was rolled back with the job's own transaction is gone: the row says running.
      await this.store.fail(run, job.minHoldMs).catch(() => undefined); // The lease ends by itself.
      return stop.signal.aborted && !this.stopped ? 'lost' : 'failed';
    } finally {
      heartbeat.cancel();
    }
  }

  /** Renews at a third of the lease; tells the job when the run is another node's. */
  private heartbeat(job: Job, run: Run, stop: AbortController): Timer {
    const { name } = job;
    let timer: Timer;
    let ended = false;
    let heldUntilMs = this.runtime.monoMs() + job.leaseMs;
    const lost = (): void => {
      const message = `another node may have taken over ${name} ${run.label}`;
      stop.abort(new TurngateError('LEASE_LOST', message));
    };
    const beat = async (): Promise<void> => {
      const sentMs = this.runtime.monoMs();
      const leftMs = heldUntilMs - sentMs;
      // An answer that stays away must not keep the job from hearing that its lease is over.
      const answer = waitFor(this.runtime, this.store.renew(run, job.leaseMs), {
        limitMs: leftMs > 0 ? leftMs : job.leaseMs / 3, // Late ourselves: perhaps nobody came.
        onCut: () =>
          new TurngateError('STORE_UNAVAILABLE', `no answer within the lease of ${name}`),
        keepAlive: false,
      });
      const held = await answer.catch(() => undefined);
      if (ended) return;
      if (held === true) heldUntilMs = sentMs + job.leaseMs;
      if (held === false || this.runtime.monoMs() >= heldUntilMs) return lost();
      timer = this.runtime.timer(job.leaseMs / 3, false, () => void beat());
    };
    timer = this.runtime.timer(job.leaseMs / 3, false, () => void beat());
    return {
      cancel() {
        ended = true;
        timer.cancel();
      },
    };
  }
}
