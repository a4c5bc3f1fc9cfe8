/**
 * Locks in a PostgreSQL table: one row per name, the database's clock, a fence that survives. Works
 * behind connection poolers, holds no connection while the lock is held or waited for.
 */
import type {
  LockAnswer,
  LockAttempt,
  LockGrant,
  LockState,
  LockStore,
} from '../../contract/lock-store.ts';
import type { PostgresDriver, Row } from './driver.ts';
import * as sql from './lock-statements.ts';
import { ourStoreError } from './postgres-error.ts';
import type { Statement } from './statements.ts';

/** The lock store over any PostgreSQL driver. */
export class PostgresLocks implements LockStore {
  readonly name = 'postgres';
  readonly capabilities = {
    clock: 'server',
    fencing: 'failover-safe',
    wakeup: 'poll',
    failover: 'depends',
    fairness: 'none',
  } as const;
  private readonly driver: PostgresDriver<unknown>;

  constructor(driver: PostgresDriver<unknown>) {
    this.driver = driver;
  }

  async tryAcquire({ name, owner, leaseMs }: LockAttempt): Promise<LockGrant> {
    const [row] = await this.run(sql.acquire, [name, owner, String(leaseMs)]);
    const [fence, remainingMs] = row ?? [null, null];
    if (fence != null) return { kind: 'granted', fence: BigInt(fence) };
    // No row at all: somebody inserted the name after our snapshot, so it is freshly taken.
    return { kind: 'held', remainingMs: Math.max(0, Number(remainingMs ?? leaseMs)) };
  }

  async renew(attempts: readonly LockAttempt[]): Promise<readonly LockAnswer[]> {
    const list = JSON.stringify(
      attempts.map(({ name, owner, leaseMs }) => ({ name, owner, leaseMs })),
    );
    const rows = await this.run(sql.renew, [list]);
    const answers: LockAnswer[] = attempts.map(() => 'expired');
    for (const [ordinal, answer] of rows) answers[Number(ordinal) - 1] = answer as LockAnswer;
    return answers;
  }

  async release({ name, owner }: { name: string; owner: string }): Promise<LockAnswer> {
    const [row] = await this.run(sql.release, [name, owner]);
    return (row?.[0] as LockAnswer | undefined) ?? 'expired';
  }

  async inspect(name: string): Promise<LockState | undefined> {
    const [row] = await this.run(sql.inspect, [name]);
    if (row === undefined) return undefined;
    const [owner, fence, remainingMs] = row as string[];
    return {
      name,
      owner: owner as string,
      fence: BigInt(fence as string),
      remainingMs: Number(remainingMs),
    };
  }

  private async run(statement: Statement, values: readonly string[]): Promise<Row[]> {
    try {
      return await this.driver.run({ statement, values });
    } catch (error) {
      throw ourStoreError(error);
    }
  }
}
