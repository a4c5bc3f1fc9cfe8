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
import { optionError } from '../../core/option.ts';
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
    shares: false,
    fenceBlocks: true,
  } as const;
  private readonly driver: PostgresDriver<unknown>;

  constructor(driver: PostgresDriver<unknown>) {
    this.driver = driver;
  }

  async tryAcquire(attempt: LockAttempt): Promise<LockGrant> {
    const [row] = await this.run(sql.acquire, grantValues(attempt));
    const [fence, remainingMs] = row ?? [null, null];
    return answerOf(attempt, fence, remainingMs);
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

  async pass(
    attempt: LockAttempt,
    next: LockAttempt,
  ): Promise<{ answer: LockAnswer; grant: LockGrant }> {
    if (attempt.name === next.name) {
      const [row] = await this.run(sql.pass, [...grantValues(next), attempt.owner]);
      if (row !== undefined) {
        const [answer, fence, remainingMs] = row;
        return { answer: answer as LockAnswer, grant: answerOf(next, fence, remainingMs) };
      }
    }
    return { answer: await this.release(attempt), grant: await this.tryAcquire(next) };
  }

  async forceRelease(name: string): Promise<'released' | 'free'> {
    const rows = await this.run(sql.force, [name]);
    return rows.length === 0 ? 'free' : 'released';
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

  private async run(statement: Statement, values: readonly string[]): Promise<readonly Row[]> {
    try {
      const [answer] = await this.driver.run([{ statement, values }]);
      return answer?.rows ?? [];
    } catch (error) {
      throw ourStoreError(error);
    }
  }
}

function grantValues(attempt: LockAttempt): string[] {
  const { name, owner, leaseMs, share, fences = 1 } = attempt;
  if (share !== undefined) throw optionError('share', 'absent on PostgreSQL', 'a share');
  return [name, owner, String(leaseMs), String(fences)];
}

function answerOf(
  { leaseMs }: LockAttempt,
  fence: string | null | undefined,
  remainingMs: string | null | undefined,
): LockGrant {
  if (fence != null) return { kind: 'granted', fence: BigInt(fence) };
  // No row at all: somebody inserted the name after our snapshot, so it is freshly taken. At least
  // 1: it was held when the database looked.
  return { kind: 'held', remainingMs: Math.max(1, Number(remainingMs ?? leaseMs)) };
}
