/**
 * Locks in ZooKeeper: an ephemeral sequential node per attempt, the lowest one holds, everybody
 * else waits for the node in front. The session decides over life and death; the lease of one
 * attempt, and its place in the queue, are ended by this process.
 */
import type {
  LockAnswer,
  LockAttempt,
  LockGrant,
  LockGranted,
  LockLossListener,
  LockState,
  LockStore,
} from '../../contract/lock-store.ts';
import { isTurngateError, TurngateError } from '../../core/errors.ts';
import { optionError } from '../../core/option.ts';
import { Attempts, attemptId } from '../../runtime/attempts.ts';
import { Followers } from '../../runtime/followers.ts';
import { Lapses } from '../../runtime/lapses.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { Turns } from '../../runtime/turns.ts';
import { int64 } from './client.ts';
import { Directory, raceMax } from './directory.ts';
import { Entry } from './entry.ts';
import type { QueueNode } from './queue-node.ts';
import type { Session } from './session.ts';
import { SessionGuard } from './session-guard.ts';
import { type Connection, Sessions, type ZookeeperSource } from './sessions.ts';

/** The lock store over one ZooKeeper session at a time. */
export class ZookeeperLocks implements LockStore {
  readonly name = 'zookeeper';
  readonly capabilities = {
    clock: 'server',
    fencing: 'failover-safe',
    wakeup: 'push',
    failover: 'safe',
    fairness: 'fifo',
    shares: false,
    fenceBlocks: false,
  } as const;
  private readonly runtime: Runtime;
  private readonly directory: Directory;
  private readonly sessions: Sessions;
  private readonly lapses: Lapses;
  private readonly turns = new Turns();
  private readonly followers = new Followers();
  private readonly attempts: Attempts<Entry>;
  private readonly guards = new Map<Connection, SessionGuard>();
  private readonly lossListeners = new Set<LockLossListener>();
  /** Lost with their session, and neither released nor tried again since. */
  private readonly lost = new Set<string>();

  constructor(
    runtime: Runtime,
    source: ZookeeperSource,
    options: { root: string; limitMs: number; acls: unknown },
  ) {
    this.runtime = runtime;
    this.directory = new Directory(options.root);
    this.lapses = new Lapses(runtime);
    this.attempts = new Attempts(runtime, this.lapses, (entry) => this.lapse(entry));
    this.sessions = new Sessions(runtime, source, {
      limitMs: options.limitMs,
      acls: options.acls,
      onDeath: (connection) => this.loseAll(connection),
      onReconnect: () => this.followers.pushAll(),
    });
  }

  async tryAcquire(attempt: LockAttempt): Promise<LockGrant> {
    if (attempt.share !== undefined) throw optionError('share', 'absent on ZooKeeper', 'a share');
    return await this.turns.take(attemptId(attempt), () => ours(this.acquire(attempt)));
  }

  renew(attempts: readonly LockAttempt[]): Promise<readonly LockAnswer[]> {
    return ours(Promise.all(attempts.map((attempt) => this.renewOne(attempt))));
  }

  release(attempt: LockAttempt): Promise<LockAnswer> {
    return this.turns.take(attemptId(attempt), () => ours(this.leave(attempt)));
  }

  inspect(name: string): Promise<LockState | undefined> {
    return ours(this.look(name));
  }

  async forceRelease(name: string): Promise<'released' | 'free'> {
    const { session } = await this.sessions.use();
    const nodes = await ours(this.directory.queue(session, name));
    await ours(
      Promise.all(nodes.map(({ child }) => session.remove(this.directory.path(name, child)))),
    );
    this.directory.tidy(session, name);
    return nodes.length === 0 ? 'free' : 'released';
  }

  /** @returns the end of watching */
  watch(attempt: LockAttempt, onPush: (granted?: LockGranted) => void): () => void {
    const key = attemptId(attempt);
    const unwatch = this.followers.add(key, () => onPush());
    const entry = this.attempts.get(attempt);
    if (entry?.ahead !== undefined) this.follow(entry.connection, key, entry.ahead);
    return unwatch;
  }

  /** Tells at once when a session ends or falls silent; renewals would tell later. */
  onLoss(listener: LockLossListener): () => void {
    this.lossListeners.add(listener);
    return () => void this.lossListeners.delete(listener);
  }

  /** Ends the session if this store opened it. Locks still held are lost. */
  async close(): Promise<void> {
    this.sessions.close();
  }

  private async acquire(attempt: LockAttempt): Promise<LockGrant> {
    const connection = await this.sessions.use();
    const { session } = connection;
    this.checkLease(session, attempt.leaseMs);
    const key = attemptId(attempt);
    this.lost.delete(key);
    for (let race = 0; race < raceMax; race++) {
      const known = this.attempts.get(attempt);
      let entry = known?.connection === connection ? known : undefined;
      if (entry === undefined) {
        if (attempt.queueMs === undefined) {
          const [holder] = await this.directory.queue(session, attempt.name);
          if (holder !== undefined && holder.owner !== attempt.owner) {
            this.follow(connection, key, this.directory.path(attempt.name, holder.child));
            return { kind: 'held', remainingMs: this.remainingMs(attempt.name, holder) };
          }
        }
        entry = new Entry(attempt, connection);
        this.attempts.add(entry);
        entry.path = await this.directory.join(session, attempt);
      }
      const grant = await this.position(attempt, entry);
      if (grant !== undefined) return grant;
    }
    throw new TurngateError('STORE_UNAVAILABLE', 'ZooKeeper: our node keeps vanishing');
  }

  /** Where our node stands; undefined when it is not there (any more). */
  private async position(attempt: LockAttempt, entry: Entry): Promise<LockGrant | undefined> {
    const { session } = entry.connection;
    const nodes = await this.directory.queue(session, entry.name);
    // The node may be there although its create was never answered.
    const path = entry.path ?? (await this.directory.findOwn(session, attempt, nodes));
    entry.path = path;
    const index = nodes.findIndex(({ child }) => this.directory.path(entry.name, child) === path);
    if (index === -1) {
      this.attempts.forget(entry);
      return undefined;
    }
    if (index > 0) return this.stand(attempt, entry, nodes, index);
    const stat = await session.exists(path as string);
    // It may have lapsed, or its session died, while we looked.
    if (!this.attempts.isCurrent(entry)) return undefined;
    if (stat === null || int64(stat.ephemeralOwner) !== session.id) {
      this.attempts.forget(entry);
      return undefined;
    }
    if (!entry.held) {
      entry.fence = int64(stat.czxid);
      this.attempts.keepHold(entry, attempt.leaseMs);
      entry.ahead = path as string;
      this.guard(entry.connection).start();
    }
    return { kind: 'granted', fence: entry.fence as bigint };
  }

  /** Not the first: stay in the queue, or go if the attempt does not queue. */
  private async stand(
    attempt: LockAttempt,
    entry: Entry,
    nodes: readonly QueueNode[],
    index: number,
  ): Promise<LockGrant | undefined> {
    if (!this.attempts.isCurrent(entry)) return undefined;
    const holder = nodes[0] as QueueNode;
    const remainingMs = this.remainingMs(entry.name, holder);
    if (attempt.queueMs === undefined) {
      this.attempts.forget(entry);
      await this.directory.leave(entry.connection, entry.name, entry.path as string);
      this.follow(
        entry.connection,
        attemptId(entry),
        this.directory.path(entry.name, holder.child),
      );
    } else {
      this.attempts.keepPlace(entry, attempt.queueMs);
      entry.ahead = this.directory.path(entry.name, (nodes[index - 1] as QueueNode).child);
      this.follow(entry.connection, attemptId(entry), entry.ahead);
    }
    return { kind: 'held', remainingMs };
  }

  private async renewOne(attempt: LockAttempt): Promise<LockAnswer> {
    const key = attemptId(attempt);
    if (this.lost.has(key)) return 'expired';
    const entry = this.attempts.get(attempt);
    if (entry?.held !== true) return await this.otherHolder(attempt);
    if (this.attempts.isDue(entry)) {
      this.lapse(entry); // Its timer is late.
      return await this.otherHolder(attempt);
    }
    const { session } = entry.connection;
    this.checkLease(session, attempt.leaseMs);
    if (!session.connected) {
      throw new TurngateError('STORE_UNAVAILABLE', 'ZooKeeper is not connected');
    }
    const stat = await session.exists(entry.path as string);
    const still = this.attempts.isCurrent(entry);
    if (still && stat !== null && int64(stat.ephemeralOwner) === session.id) {
      this.attempts.keepHold(entry, attempt.leaseMs);
      return 'ours';
    }
    if (still) this.attempts.forget(entry);
    return await this.otherHolder(attempt);
  }

  private async leave(attempt: LockAttempt): Promise<LockAnswer> {
    this.lost.delete(attemptId(attempt));
    const entry = this.attempts.get(attempt);
    if (entry?.path === undefined) {
      if (entry !== undefined) this.attempts.forget(entry);
      return await this.leaveUnknown(attempt);
    }
    const live = entry.held && !this.attempts.isDue(entry);
    this.attempts.forget(entry);
    const removed = await this.directory.leave(entry.connection, entry.name, entry.path);
    return removed && live ? 'ours' : await this.otherHolder(attempt);
  }

  /** Removes whatever nodes of this owner there are: a lost reply may have left one. */
  private async leaveUnknown(attempt: LockAttempt): Promise<LockAnswer> {
    const { name } = attempt;
    const connection = await this.sessions.use();
    const nodes = await this.directory.queue(connection.session, name);
    const own = nodes.filter(({ owner }) => owner === attempt.owner);
    for (const { child } of own) {
      await this.directory.leave(connection, name, this.directory.path(name, child));
    }
    return nodes.length > own.length ? 'taken' : 'expired';
  }

  /** Of an attempt that is not the holder: has somebody else taken the lock? */
  private async otherHolder({ name, owner }: LockAttempt): Promise<LockAnswer> {
    const { session } = await this.sessions.use();
    const nodes = await this.directory.queue(session, name);
    return nodes.some((node) => node.owner !== owner) ? 'taken' : 'expired';
  }

  private async look(name: string): Promise<LockState | undefined> {
    const { session } = await this.sessions.use();
    for (let race = 0; race < raceMax; race++) {
      const nodes = await this.directory.queue(session, name);
      const [first] = nodes;
      if (first === undefined) return undefined;
      const stat = await session.exists(this.directory.path(name, first.child));
      if (stat === null) continue;
      return {
        name,
        owner: first.owner,
        fence: int64(stat.czxid),
        remainingMs: this.remainingMs(name, first),
        holders: 1,
        waiters: nodes.length - 1,
      };
    }
    throw new TurngateError('STORE_UNAVAILABLE', 'ZooKeeper: the holder changes too fast');
  }

  /** The attempt was not repeated or renewed in time: its node goes, as if it had been released. */
  private lapse(entry: Entry): void {
    this.attempts.forget(entry);
    if (entry.path !== undefined)
      this.directory.leaveSurely(entry.connection, entry.name, entry.path);
  }

  private follow({ departures }: Connection, key: string, path: string): void {
    this.followers.follow(key, path, (onGone) => departures.add(path, onGone));
  }

  private guard(connection: Connection): SessionGuard {
    let guard = this.guards.get(connection);
    if (guard === undefined) {
      guard = new SessionGuard(this.runtime, this.lapses, connection.session, {
        holds: () => this.holdsOf(connection).length > 0,
        onSuspect: () => this.loseHolds(connection),
      });
      this.guards.set(connection, guard);
    }
    return guard;
  }

  private holdsOf(connection: Connection): Entry[] {
    return this.attempts.all().filter((e) => e.held && e.connection === connection);
  }

  /** No word from the server for too long: nobody may go on believing. */
  private loseHolds(connection: Connection): void {
    for (const entry of this.holdsOf(connection)) {
      this.lost.add(attemptId(entry));
      this.lapse(entry);
      for (const listener of this.lossListeners) listener(entry);
    }
  }

  /** The session is dead: its nodes are gone or going, its waiters have to ask again. */
  private loseAll(connection: Connection): void {
    this.loseHolds(connection);
    for (const entry of this.attempts.all()) {
      if (entry.connection === connection) this.attempts.forget(entry);
    }
    this.guards.delete(connection);
    connection.departures.allGone();
  }

  /** Exact for our own holds; for another process's the most it can be. */
  private remainingMs(name: string, { owner, leaseMs }: QueueNode): number {
    return this.attempts.leftMs({ name, owner }) ?? leaseMs;
  }

  private checkLease({ timeoutMs }: Session, leaseMs: number): void {
    if (leaseMs <= timeoutMs) return;
    throw optionError(
      'leaseMs',
      `at most ${timeoutMs}, the negotiated session timeout: the session would end before the lease`,
      leaseMs,
    );
  }
}

/** Errors in our own words. */
async function ours<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    if (isTurngateError(error)) throw error;
    const message = `ZooKeeper refused a command: ${(error as Error).message}`;
    throw new TurngateError('STORE_UNAVAILABLE', message, { cause: error });
  }
}
