/**
 * Locks in a MySQL table: one row per name, the database's clock, a fence that survives. Works behind
 * proxies, holds no connection while the lock is held or waited for.
 */
import type {
  LockAnswer,
  LockAttempt,
  LockGrant,
  LockState,
  LockStore,
} from '../../contract/lock-store.ts';
import type { Answer, MysqlDriver, Row } from './driver.ts';
import * as sql from './lock-statements.ts';
import { isConflict, ourStoreError } from './mysql-error.ts';

const deadlockTries = 5;

/** The lock store over a MySQL driver. */
export class MysqlLocks implements LockStore {
  readonly name = 'mysql';
  readonly capabilities = {
    clock: 'server',
    fencing: 'failover-safe',
    wakeup: 'poll',
    failover: 'depends',
    fairness: 'none',
    shares: false,
    fenceBlocks: true,
  } as const;
  private readonly driver: MysqlDriver<unknown>;

  constructor(driver: MysqlDriver<unknown>) {
    this.driver = driver;
  }

  async tryAcquire(attempt: LockAttempt): Promise<LockGrant> {
    const id = sql.lockId(attempt.name);
    return grantOf(attempt, await this.change(sql.acquire(id, attempt), sql.show(id)));
  }

  async renew(attempts: readonly LockAttempt[]): Promise<readonly LockAnswer[]> {
    if (attempts.length === 0) return [];
    const ids = attempts.map(({ name }) => sql.lockId(name));
    const answers = await this.run([sql.renew(ids, attempts), sql.showAll(ids)]);
    const rows = new Map(answers[1]?.rows.map((row) => [row[0], row]));
    return attempts.map(({ owner }, i) => {
      const [, holder, live] = rows.get(ids[i] as string) ?? [];
      if (live !== '1') return 'expired';
      return holder === owner ? 'ours' : 'taken';
    });
  }

  async release({ name, owner }: { name: string; owner: string }): Promise<LockAnswer> {
    const id = sql.lockId(name);
    const [freed] = await this.run([sql.release(id, owner)]);
    if (freed?.affectedRows === 1) return 'ours';
    const [shown] = await this.run([sql.show(id)]);
    return strangerAnswer(owner, shown?.rows[0]);
  }

  async pass(
    attempt: LockAttempt,
    next: LockAttempt,
  ): Promise<{ readonly answer: LockAnswer; readonly grant: LockGrant }> {
    const id = sql.lockId(attempt.name);
    const answers = await this.run([sql.pass(id, attempt.owner, next), sql.show(id)]);
    const row = answers[1]?.rows[0];
    // Also when the reply to an earlier, equal call was lost.
    if (row?.[0] === next.owner) return { answer: 'ours', grant: grantOf(next, row) };
    return { answer: strangerAnswer(attempt.owner, row), grant: await this.tryAcquire(next) };
  }

  async inspect(name: string): Promise<LockState | undefined> {
    const [answer] = await this.run([sql.show(sql.lockId(name))]);
    const [owner, fence, leftUs] = (answer?.rows[0] ?? []) as string[];
    if (owner === undefined || Number(leftUs) <= 0) return undefined;
    return { name, owner, fence: BigInt(fence as string), remainingMs: Number(leftUs) / 1_000 };
  }

  async forceRelease(name: string): Promise<'released' | 'free'> {
    const [freed] = await this.run([sql.forceRelease(sql.lockId(name))]);
    return freed?.affectedRows === 1 ? 'released' : 'free';
  }

  /** A change and the row after it, which MariaDB gives with the change itself. */
  private async change(statement: string, show: string): Promise<Row> {
    const [changed] = await this.run([statement]);
    const row = changed?.rows[0] ?? (await this.run([show]))[0]?.rows[0];
    return row as Row;
  }

  /**
   * Single statements outside a transaction: one that a deadlock has undone is as if it was never sent,
   * and all of ours may be sent again.
   */
  private async run(texts: readonly string[]): Promise<Answer[]> {
    for (let tries = 1; ; tries++) {
      try {
        return await runOn(this.driver, texts);
      } catch (error) {
        if (!isConflict(error) || tries === deadlockTries) throw ourStoreError(error);
      }
    }
  }
}

async function runOn(driver: MysqlDriver<unknown>, texts: readonly string[]): Promise<Answer[]> {
  const link = await driver.connect();
  try {
    const answers = await link.batch(texts);
    link.release();
    return answers;
  } catch (error) {
    if (isConflict(error)) link.release();
    else link.destroy();
    throw error;
  }
}

/** The owner decides, never a count of rows. */
export function grantOf({ owner }: LockAttempt, [holder, fence, leftUs]: Row): LockGrant {
  if (holder === owner) return { kind: 'granted', fence: BigInt(fence as string) };
  return { kind: 'held', remainingMs: Math.max(0, Number(leftUs) / 1_000) };
}

/** Rows (owner, fence, remaining microseconds) to somebody who does not hold the lock. */
export function strangerAnswer(owner: string, row: Row | undefined): LockAnswer {
  return row === undefined || row[0] === owner || Number(row[2]) <= 0 ? 'expired' : 'taken';
}
