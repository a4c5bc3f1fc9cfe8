/**
 * Advisory session locks: no table is written, nothing is left after a crash, and the end of the
 * connection frees everything at once. One connection holds all locks of a store.
 */
import { createHash } from 'node:crypto';
import type {
  LockAnswer,
  LockAttempt,
  LockGrant,
  LockLossListener,
  LockState,
  LockStore,
} from '../../contract/lock-store.ts';
import { isTurngateError } from '../../core/errors.ts';
import { optionError } from '../../core/option.ts';
import { attemptId } from '../../runtime/attempts.ts';
import { Lapses } from '../../runtime/lapses.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { Turns } from '../../runtime/turns.ts';
import type { Row } from './driver.ts';
import type { ConnectionSource } from './session-clients.ts';
import { type AdvisorySession, SessionKeeper } from './session-connection.ts';

const unlockTriesMax = 10;

// The backend is compared before the lock is taken: nothing is ever left on another one.
const tryLock = `SELECT CASE WHEN pg_backend_pid() = $2::int AND pg_try_advisory_lock($1::bigint)
  THEN nextval('turngate_lock_fence')::text END, pg_backend_pid()::text`;
const unlock = `SELECT CASE WHEN pg_backend_pid() = $2::int
  THEN pg_advisory_unlock($1::bigint)::text END, pg_backend_pid()::text`;
const key64 = '((classid::bigint << 32) | objid::bigint)';
const advisory = `locktype = 'advisory' AND objsubid = 1 AND granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
const ownKeys = `SELECT coalesce(string_agg(${key64}::text, ','), ''), pg_backend_pid()::text
  FROM pg_locks WHERE ${advisory} AND pid = pg_backend_pid()`;
const holder = `SELECT (SELECT pid::text FROM pg_locks WHERE ${advisory} AND ${key64} = $1::bigint
  LIMIT 1), pg_backend_pid()::text`;

interface Held {
  readonly key: string;
  readonly name: string;
  readonly owner: string;
  readonly fence: bigint;
  readonly session: AdvisorySession;
  deadlineMonoMs: number;
}

/** The lock store over one PostgreSQL session. */
export class PostgresSessionLocks implements LockStore {
  readonly name = 'postgres-session';
  readonly capabilities = {
    clock: 'process',
    fencing: 'durable',
    wakeup: 'poll',
    failover: 'depends',
    fairness: 'none',
    shares: false,
    fenceBlocks: false,
  } as const;
  private readonly runtime: Runtime;
  private readonly namespace: string;
  private readonly keeper: SessionKeeper;
  private readonly lapses: Lapses;
  private readonly turns = new Turns();
  /** By key, not by name: two names that meet in one key would both get a lock of this session. */
  private readonly held = new Map<string, Held>();
  private readonly lost = new Set<string>();
  private readonly lossListeners = new Set<LockLossListener>();

  constructor(
    runtime: Runtime,
    source: ConnectionSource,
    options: { namespace: string; limitMs: number },
  ) {
    this.runtime = runtime;
    this.namespace = options.namespace;
    this.lapses = new Lapses(runtime);
    this.keeper = new SessionKeeper(runtime, source, {
      limitMs: options.limitMs,
      busy: () => this.held.size > 0,
      onDeath: (session) => this.lose(session),
    });
  }

  async tryAcquire(attempt: LockAttempt): Promise<LockGrant> {
    if (attempt.share !== undefined)
      throw optionError('share', 'absent in session mode', 'a share');
    const key = this.keyOf(attempt.name);
    return await this.turns.take(key, () => this.acquire(key, attempt));
  }

  async renew(attempts: readonly LockAttempt[]): Promise<readonly LockAnswer[]> {
    const mine = attempts.some((attempt) => this.liveHold(attempt) !== undefined);
    const keys = mine ? await this.keysOfSession() : new Set<string>();
    return await Promise.all(
      attempts.map(async (attempt) => {
        const hold = this.liveHold(attempt);
        if (hold === undefined || !keys.has(hold.key)) return await this.otherHolder(attempt);
        this.setDeadline(hold, attempt.leaseMs);
        return 'ours';
      }),
    );
  }

  async release(attempt: LockAttempt): Promise<LockAnswer> {
    this.lost.delete(attemptId(attempt));
    const key = this.keyOf(attempt.name);
    return await this.turns.take(key, async () => {
      const hold = this.held.get(key);
      if (hold?.owner !== attempt.owner) return await this.otherHolder(attempt);
      const live = !this.isDue(hold);
      await this.free(hold);
      return live ? 'ours' : await this.otherHolder(attempt);
    });
  }

  async inspect(name: string): Promise<LockState | undefined> {
    const key = this.keyOf(name);
    const hold = this.held.get(key);
    if (hold !== undefined) {
      const remainingMs = hold.deadlineMonoMs - this.runtime.monoMs();
      if (remainingMs <= 0) return undefined;
      return { name, owner: hold.owner, fence: hold.fence, remainingMs, holders: 1 };
    }
    const pid = await this.holderPid(key);
    // PostgreSQL knows the backend, not the attempt, its fence or its lease.
    if (pid === undefined) return undefined;
    return { name, owner: `backend ${pid}`, fence: 0n, remainingMs: 0, holders: 1 };
  }

  /** Tells at once when the connection ends; renewals would tell later. */
  onLoss(listener: LockLossListener): () => void {
    this.lossListeners.add(listener);
    return () => void this.lossListeners.delete(listener);
  }

  /** Gives the connection back. Locks still held are lost. */
  async close(): Promise<void> {
    await this.keeper.close();
  }

  private async acquire(key: string, attempt: LockAttempt): Promise<LockGrant> {
    const { name, owner, leaseMs } = attempt;
    this.lost.delete(attemptId(attempt));
    const hold = this.held.get(key);
    if (hold !== undefined && !this.isDue(hold)) {
      if (hold.owner === owner && hold.name === name) return { kind: 'granted', fence: hold.fence };
      return { kind: 'held', remainingMs: hold.deadlineMonoMs - this.runtime.monoMs() };
    }
    if (hold !== undefined) await this.free(hold);
    return await this.keeper.with(async (session) => {
      let fence: string | null | undefined;
      try {
        fence = (await this.ask(session, tryLock, [key, session.pid]))?.[0];
      } catch (error) {
        // A timeout of the server can strike after the lock was taken.
        if (!session.dead) await this.unlockOn(session, key).catch(() => session.die());
        throw error;
      }
      if (fence == null) return { kind: 'held', remainingMs: leaseMs };
      const granted: Held = { key, name, owner, session, fence: BigInt(fence), deadlineMonoMs: 0 };
      if (session.dead) return { kind: 'held', remainingMs: leaseMs };
      this.held.set(key, granted);
      this.setDeadline(granted, leaseMs);
      return { kind: 'granted', fence: granted.fence };
    });
  }

  private async keysOfSession(): Promise<ReadonlySet<string>> {
    return await this.keeper.with(async (session) => {
      const row = await this.ask(session, ownKeys, []);
      return new Set((row?.[0] ?? '').split(','));
    });
  }

  /** Of an attempt that is not the holder: has somebody else taken the lock? */
  private async otherHolder(attempt: LockAttempt): Promise<LockAnswer> {
    if (this.lost.has(attemptId(attempt))) return 'expired';
    const key = this.keyOf(attempt.name);
    const hold = this.held.get(key);
    if (hold !== undefined) {
      return this.isDue(hold) || hold.owner === attempt.owner ? 'expired' : 'taken';
    }
    return (await this.holderPid(key)) === undefined ? 'expired' : 'taken';
  }

  private async holderPid(key: string): Promise<string | undefined> {
    const row = await this.keeper.with((session) => this.ask(session, holder, [key]));
    return row?.[0] ?? undefined;
  }

  private async free(hold: Held): Promise<void> {
    this.forget(hold);
    if (hold.session.dead) return;
    await this.keeper.pinned(async () => {
      try {
        await this.unlockOn(hold.session, hold.key);
      } catch (error) {
        void hold.session.die(); // With the connection the lock goes too.
        throw error;
      }
    });
  }

  /** On another backend than ours nothing can be relied on: free what we can and give it up. */
  private async ask(
    session: AdvisorySession,
    text: string,
    values: readonly string[],
  ): Promise<Row | undefined> {
    try {
      return await session.query(text, values);
    } catch (error) {
      if (!isTurngateError(error, 'OPTION_INVALID')) throw error;
      for (const hold of [...this.held.values()]) {
        if (hold.session === session) await this.unlockOn(session, hold.key).catch(() => {});
      }
      void session.die();
      throw error;
    }
  }

  /** Every answer is checked: behind a pooler the lock may be on a backend we no longer reach. */
  private async unlockOn(session: AdvisorySession, key: string): Promise<void> {
    let trouble: unknown;
    for (let tries = 0; tries < unlockTriesMax; tries++) {
      try {
        await session.query(unlock, [key, session.pid]);
        return;
      } catch (error) {
        if (!isTurngateError(error, 'OPTION_INVALID')) throw error;
        trouble = error; // Another backend answered: the right one may come round.
      }
    }
    throw trouble;
  }

  private lose(session: AdvisorySession): void {
    for (const hold of [...this.held.values()]) {
      if (hold.session !== session) continue;
      this.forget(hold);
      this.lost.add(attemptId(hold));
      for (const listener of this.lossListeners) listener({ name: hold.name, owner: hold.owner });
    }
  }

  private liveHold(attempt: LockAttempt): Held | undefined {
    const hold = this.held.get(this.keyOf(attempt.name));
    return hold?.owner === attempt.owner && !this.isDue(hold) ? hold : undefined;
  }

  private setDeadline(hold: Held, leaseMs: number): void {
    hold.deadlineMonoMs = this.runtime.monoMs() + leaseMs;
    this.lapses.set(hold, hold.deadlineMonoMs, () => {
      // Behind verbs under way: one of them may be the release.
      const free = async (): Promise<void> => {
        if (this.held.get(hold.key) === hold && this.isDue(hold)) await this.free(hold);
      };
      this.turns.take(hold.key, free).catch(() => {});
    });
  }

  private isDue(hold: Held): boolean {
    return this.runtime.monoMs() >= hold.deadlineMonoMs;
  }

  private forget(hold: Held): void {
    this.lapses.delete(hold);
    if (this.held.get(hold.key) === hold) this.held.delete(hold.key);
  }

  /** SHA-256: two names that met in a weaker hash would exclude each other for no visible reason. */
  private keyOf(name: string): string {
    const digest = createHash('sha256').update(this.namespace).update('\0').update(name).digest();
    return String(digest.readBigInt64BE());
  }
}
