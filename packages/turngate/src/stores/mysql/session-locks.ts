/**
 * Locks by GET_LOCK. The lock is the server's and lives exactly as long as our connection; the table row
 * beside it carries the fence and tells others who has it and since when.
 */
import type {
  LockAnswer,
  LockAttempt,
  LockGrant,
  LockLossListener,
  LockState,
  LockStore,
} from '../../contract/lock-store.ts';
import { TurngateError } from '../../core/errors.ts';
import { Lapses } from '../../runtime/lapses.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { Turns } from '../../runtime/turns.ts';
import type { Answer, MysqlDriver, OwnLink, Row } from './driver.ts';
import * as sql from './lock-statements.ts';
import { ourStoreError } from './mysql-error.ts';
import { grantOf, strangerAnswer } from './mysql-locks.ts';
import { userLock } from './user-lock.ts';

interface Held {
  readonly owner: string;
  readonly fence: bigint;
  endMonoMs: number;
}

/** The connection that holds the locks, and what it holds. */
interface Holding {
  readonly link: OwnLink<unknown>;
  readonly connectionId: string;
  readonly held: Map<string, Held>;
}

/** The lock store on one connection of a MySQL driver. */
export class MysqlSessionLocks implements LockStore {
  readonly name = 'mysql-session';
  readonly capabilities = {
    clock: 'process',
    fencing: 'failover-safe',
    wakeup: 'poll',
    failover: 'depends',
    fairness: 'none',
    shares: false,
    fenceBlocks: true,
  } as const;
  private readonly driver: MysqlDriver<unknown>;
  private readonly runtime: Runtime;
  private holding: Promise<Holding> | undefined;
  private readonly lossListeners = new Set<LockLossListener>();
  /** GET_LOCK lets one connection in twice, so calls on one name take turns here. */
  private readonly turns = new Turns();
  private readonly lapses: Lapses;

  constructor(driver: MysqlDriver<unknown>, runtime: Runtime) {
    this.driver = driver;
    this.runtime = runtime;
    this.lapses = new Lapses(runtime);
  }

  tryAcquire(attempt: LockAttempt): Promise<LockGrant> {
    return this.inTurn(attempt.name, async (holding) => {
      const { name, owner, leaseMs } = attempt;
      const id = sql.lockId(name, 'session');
      const mine = holding.held.get(name);
      if (mine !== undefined) {
        const leftMs = mine.endMonoMs - this.runtime.monoMs();
        if (leftMs > 0 && mine.owner === owner) return { kind: 'granted', fence: mine.fence };
        if (leftMs > 0) return { kind: 'held', remainingMs: leftMs };
        await this.letGo(holding, name, mine.owner);
      }
      const startMonoMs = this.runtime.monoMs();
      const lock = userLock(holding.link, 's', id);
      const [got] = await this.send(holding, [
        `SELECT GET_LOCK(${lock}, 0) AS got, CONNECTION_ID() AS id, IS_USED_LOCK(${lock}) AS holder`,
      ]);
      const [locked, connectionId, holder] = (got as Answer).rows[0] as Row;
      if (locked !== '1') return await this.heldByOther(holding, id, attempt);
      if (connectionId !== holding.connectionId || holder !== connectionId)
        throw sharedConnection();
      const [granted] = await this.send(holding, [sql.acquire(id, attempt, true)]);
      const row = granted?.rows[0] ?? (await this.send(holding, [sql.show(id)]))[0]?.rows[0];
      const grant = grantOf(attempt, row as Row);
      if (grant.kind === 'granted') {
        const { fence } = grant;
        const hold = { owner, fence, endMonoMs: 0 };
        holding.held.set(name, hold);
        this.setDeadline(holding, name, hold, startMonoMs + leaseMs);
      }
      return grant;
    });
  }

  async renew(attempts: readonly LockAttempt[]): Promise<readonly LockAnswer[]> {
    if (attempts.length === 0) return [];
    const holding = await this.open();
    const startMonoMs = this.runtime.monoMs();
    const asked = new Map<LockAttempt, Held>();
    for (const attempt of attempts) {
      const hold = this.holdOf(holding, attempt);
      if (hold !== undefined) asked.set(attempt, hold);
    }
    if (asked.size > 0) {
      const due = [...asked.keys()];
      const ids = due.map(({ name }) => sql.lockId(name, 'session'));
      // The heartbeat: an answer from the same connection means that the server keeps our locks.
      const [beat] = await this.send(holding, [
        'SELECT CONNECTION_ID() AS id',
        // Whatever the row's own clock says: the connection holds the name.
        sql.renew(ids, due).replace(/ AND expires_us > .*$/, ''),
      ]);
      if (beat?.rows[0]?.[0] !== holding.connectionId) throw sharedConnection();
    }
    return await Promise.all(
      attempts.map(async (attempt) => {
        const { name, leaseMs } = attempt;
        const hold = asked.get(attempt);
        // It may have lapsed, or been let go, while the heartbeat was under way.
        if (hold === undefined || holding.held.get(name) !== hold)
          return await this.answerStranger(holding, attempt);
        this.setDeadline(holding, name, hold, startMonoMs + leaseMs);
        return 'ours' as const;
      }),
    );
  }

  release({ name, owner }: LockAttempt): Promise<LockAnswer> {
    return this.inTurn(name, async (holding) => {
      const mine = holding.held.get(name);
      if (mine?.owner !== owner) return await this.answerStranger(holding, { name, owner });
      const live = mine.endMonoMs > this.runtime.monoMs();
      await this.letGo(holding, name, owner);
      return live ? 'ours' : 'expired';
    });
  }

  async inspect(name: string): Promise<LockState | undefined> {
    const row = await this.rowOf(await this.open(), name);
    if (row === undefined) return undefined;
    const [owner, fence, leftUs] = row as string[];
    const remainingMs = Number(leftUs) / 1_000;
    return { name, owner: owner as string, fence: BigInt(fence as string), remainingMs };
  }

  /** Tells at once when the connection ends; renewals would tell later. */
  onLoss(listener: LockLossListener): () => void {
    this.lossListeners.add(listener);
    return () => void this.lossListeners.delete(listener);
  }

  /** Frees all locks of this process and gives the connection back. */
  async close(): Promise<void> {
    const { holding: opening } = this;
    this.holding = undefined;
    const holding = await opening?.catch(() => undefined);
    if (holding === undefined) return;
    for (const [name, { owner }] of [...holding.held]) {
      await this.letGo(holding, name, owner).catch(() => undefined);
    }
    holding.link.release();
  }

  private holdOf(holding: Holding, { name, owner }: LockAttempt): Held | undefined {
    const hold = holding.held.get(name);
    return hold?.owner === owner && hold.endMonoMs > this.runtime.monoMs() ? hold : undefined;
  }

  private async letGo(holding: Holding, name: string, owner: string): Promise<void> {
    const id = sql.lockId(name, 'session');
    const free = `SELECT RELEASE_LOCK(${userLock(holding.link, 's', id)}) AS freed`;
    const row = sql.release(id, owner).replace(/ AND expires_us > .*$/, '');
    this.forget(holding, name); // First: a renewal under way must not count on it any more.
    const answers = await this.send(holding, [row, free]);
    if (answers[1]?.rows[0]?.[0] !== '1') {
      holding.link.destroy();
      throw sharedConnection();
    }
  }

  private async heldByOther(
    holding: Holding,
    id: string,
    { leaseMs }: LockAttempt,
  ): Promise<LockGrant> {
    const [shown] = await this.send(holding, [sql.show(id)]);
    const row = shown?.rows[0];
    // No row yet: the holder is about to write it.
    const leftMs = row === undefined ? leaseMs : Number(row[2]) / 1_000;
    return { kind: 'held', remainingMs: Math.max(1, leftMs) };
  }

  private async answerStranger(
    holding: Holding,
    { name, owner }: Pick<LockAttempt, 'name' | 'owner'>,
  ): Promise<LockAnswer> {
    return strangerAnswer(owner, await this.rowOf(holding, name));
  }

  /** The row of a name that somebody holds, its lease live. */
  private async rowOf(holding: Holding, name: string): Promise<Row | undefined> {
    const id = sql.lockId(name, 'session');
    const asked = [
      `SELECT IS_USED_LOCK(${userLock(holding.link, 's', id)}) AS holder`,
      sql.show(id),
    ];
    const [used, shown] = await this.send(holding, asked);
    const row = shown?.rows[0];
    if (used?.rows[0]?.[0] == null || row === undefined || Number(row[2]) <= 0) return undefined;
    return row;
  }

  private inTurn<T>(name: string, body: (holding: Holding) => Promise<T>): Promise<T> {
    return this.turns.take(name, async () => body(await this.open()));
  }

  /** The lease of a hold that nobody renews is ended here: the server only knows the connection. */
  private setDeadline(holding: Holding, name: string, hold: Held, endMonoMs: number): void {
    hold.endMonoMs = endMonoMs;
    this.lapses.set(hold, endMonoMs, () => {
      // Behind calls under way: one of them may be the release.
      const end = async (): Promise<void> => {
        const isDue = this.runtime.monoMs() >= hold.endMonoMs;
        if (holding.held.get(name) === hold && isDue) await this.letGo(holding, name, hold.owner);
      };
      this.turns.take(name, end).catch(() => {}); // Then the connection has ended, and the lock.
    });
  }

  private forget({ held }: Holding, name: string): void {
    const hold = held.get(name);
    if (hold !== undefined) this.lapses.delete(hold);
    held.delete(name);
  }

  /** The connection, or a new one when it has ended: with it went all locks. */
  private async open(): Promise<Holding> {
    const current = await this.holding?.catch(() => undefined);
    if (current !== undefined && !current.link.ended) return current;
    // Another call may have opened a new one meanwhile.
    const latest = this.holding;
    const known = await latest?.catch(() => undefined);
    if (latest === undefined || known === undefined || known.link.ended) {
      if (this.holding === latest) this.holding = this.connect();
    }
    return await (this.holding as Promise<Holding>);
  }

  private async connect(): Promise<Holding> {
    try {
      const link = await this.driver.connect();
      const ids: (string | null | undefined)[] = [];
      // In trips of their own: a proxy that shares connections may answer from different ones.
      for (let i = 0; i < 3; i++) {
        ids.push((await link.batch(['SELECT CONNECTION_ID() AS id']))[0]?.rows[0]?.[0]);
      }
      if (new Set(ids).size !== 1) {
        link.destroy();
        throw sharedConnection();
      }
      const holding = { link, connectionId: ids[0] as string, held: new Map() };
      link.onEnd(() => this.lose(holding));
      return holding;
    } catch (error) {
      throw ourStoreError(error);
    }
  }

  private lose({ held }: Holding): void {
    const lost = [...held];
    for (const [, hold] of lost) this.lapses.delete(hold);
    held.clear();
    for (const [name, { owner }] of lost) {
      for (const listener of this.lossListeners) listener({ name, owner });
    }
  }

  /** A failure ends the connection, and with it every lock it held. */
  private async send(holding: Holding, texts: readonly string[]): Promise<Answer[]> {
    try {
      return await holding.link.batch(texts);
    } catch (error) {
      holding.link.destroy();
      this.lose(holding);
      throw ourStoreError(error);
    }
  }
}

function sharedConnection(): TurngateError {
  const message =
    'session locks need a connection of their own, and a proxy shares this one: use mysqlLocks()';
  return new TurngateError('STORE_UNAVAILABLE', message);
}
