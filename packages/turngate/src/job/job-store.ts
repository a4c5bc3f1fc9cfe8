/** Runs of jobs in the database: one row per (job, period); every write is guarded by its owner. */
import type { SqlDatabase, SqlSession } from '../contract/sql-session.ts';
import { TurngateError } from '../core/errors.ts';
import { sqlNowMs, sqlUpsert } from '../core/sql-text.ts';
import type { Job } from './declaration.ts';
import type { Period } from './schedule.ts';

/** How a period stands. */
export type RunState = 'open' | 'running' | 'done' | 'failed';

/** A run that is ours. */
export interface Run {
  readonly job: string;
  readonly label: string;
  readonly owner: string;
  readonly fence: bigint;
}

/** The rows. */
export class JobStore {
  readonly database: SqlDatabase;
  private readonly now: string;

  constructor(database: SqlDatabase) {
    this.database = database;
    this.now = sqlNowMs[database.dialect];
  }

  /** The database's time, and since when the job is known: what was due before is not made up for. */
  async clock(job: string): Promise<{ readonly nowMs: number; readonly sinceMs: number }> {
    const text = `SELECT since_ms, ${this.now} AS now_ms FROM turngate_job WHERE job = $1`;
    let [row] = (await this.database.query(text, [job])).rows;
    if (row === undefined) {
      await this.database.query(
        `INSERT INTO turngate_job (job, since_ms) VALUES ($1, ${this.now})
         ${sqlUpsert(this.database.dialect, ['job'], [])}`,
        [job],
      );
      [row] = (await this.database.query(text, [job])).rows;
    }
    return { nowMs: Number(row?.['now_ms']), sinceMs: Number(row?.['since_ms']) };
  }

  /** The state of a period; undefined when nobody has touched it. */
  async state(job: string, label: string): Promise<RunState | undefined> {
    const text = 'SELECT state FROM turngate_job_run WHERE job = $1 AND period = $2';
    const [row] = (await this.database.query(text, [job, label])).rows;
    return row?.['state'] as RunState | undefined;
  }

  /** Takes a period for one attempt; undefined when it is done, running elsewhere or must wait. */
  async claim(job: Job, period: Period, owner: string): Promise<Run | undefined> {
    const { dialect } = this.database;
    await this.database.query(
      `INSERT INTO turngate_job_run (job, period, due_ms, state, owner, fence, attempts, lease_until_ms)
       VALUES ($1, $2, $3, 'open', '', 0, 0, 0) ${sqlUpsert(dialect, ['job', 'period'], [])}`,
      [job.name, period.label, period.dueMs],
    );
    const { affectedRows } = await this.database.query(
      `UPDATE turngate_job_run SET state = 'running', owner = $3, fence = fence + 1,
         attempts = attempts + 1, started_ms = ${this.now}, lease_until_ms = ${this.now} + $4
       WHERE job = $1 AND period = $2 AND attempts < $5 AND state <> 'done'
         AND lease_until_ms <= ${this.now}`,
      [job.name, period.label, owner, job.leaseMs, job.attemptsMax],
    );
    if (affectedRows === 0) return undefined;
    const text = 'SELECT fence FROM turngate_job_run WHERE job = $1 AND period = $2 AND owner = $3';
    const [row] = (await this.database.query(text, [job.name, period.label, owner])).rows;
    if (row === undefined) return undefined; // Stalled past the lease: another node has it by now.
    return { job: job.name, label: period.label, owner, fence: BigInt(String(row['fence'])) };
  }

  /** Pushes the lease out; false when the run is another node's. */
  async renew(run: Run, leaseMs: number): Promise<boolean> {
    return await this.guarded(this.database, run, `lease_until_ms = ${this.now} + $4`, leaseMs);
  }

  /** @throws LEASE_LOST */
  async complete(run: Run, sql: Pick<SqlSession, 'query'> = this.database): Promise<void> {
    const set = `state = 'done', finished_ms = ${this.now} + $4, lease_until_ms = 0`;
    if (await this.guarded(sql, run, set, 0)) return;
    throw new TurngateError('LEASE_LOST', `another node has taken over ${run.job} ${run.label}`);
  }

  /** Frees the period for another attempt, not before `minHoldMs` after its start. */
  async fail(run: Run, minHoldMs: number): Promise<void> {
    await this.guarded(
      this.database,
      run,
      "state = 'failed', lease_until_ms = started_ms + $4",
      minHoldMs,
    );
  }

  /** Deletes finished runs that were due before a time; returns how many. */
  async purge(beforeMs: number): Promise<number> {
    const text = "DELETE FROM turngate_job_run WHERE due_ms < $1 AND state = 'done'";
    return (await this.database.query(text, [beforeMs])).affectedRows;
  }

  private async guarded(
    sql: Pick<SqlSession, 'query'>,
    { job, label, owner }: Run,
    set: string,
    value: number,
  ): Promise<boolean> {
    const { affectedRows } = await sql.query(
      `UPDATE turngate_job_run SET ${set}
       WHERE job = $1 AND period = $2 AND owner = $3 AND state = 'running'`,
      [job, label, owner, value],
    );
    return affectedRows > 0;
  }
}
