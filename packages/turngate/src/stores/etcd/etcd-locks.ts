/**
 * Locks in etcd: a key per attempt on a lease of its own; the key that was created first holds,
 * everybody else waits for the one in front. The creation revision is the fence.
 */
import type {
  LockAnswer,
  LockAttempt,
  LockGrant,
  LockGranted,
  LockState,
  LockStore,
} from '../../contract/lock-store.ts';
import { TurngateError } from '../../core/errors.ts';
import { optionError } from '../../core/option.ts';
import { Attempts, attemptId } from '../../runtime/attempts.ts';
import { Followers } from '../../runtime/followers.ts';
import { Lapses } from '../../runtime/lapses.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { Turns } from '../../runtime/turns.ts';
import type { EtcdClientLike, EtcdKeyValueLike } from './client.ts';
import { Departures } from './departures.ts';
import { Entry } from './entry.ts';
import { createdAt, Keys, leaseMsOf, ownerOf, readBefore, readFirst } from './keys.ts';
import { EtcdServer, secondsOf } from './server.ts';

const raceMax = 10; // Places that lapse while we look.

interface Standing {
  /** Our key; undefined when there is none. */
  readonly own: EtcdKeyValueLike | undefined;
  readonly first: EtcdKeyValueLike | undefined;
}

/** The lock store over one etcd client. */
export class EtcdLocks implements LockStore {
  readonly name = 'etcd';
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
  private readonly server: EtcdServer;
  private readonly keys: Keys;
  private readonly departures: Departures;
  private readonly turns = new Turns();
  private readonly followers = new Followers();
  private readonly attempts: Attempts<Entry>;
  /** Names with a lease of ours that is just being revoked: calls are not ordered by the server. */
  private readonly ending = new Map<string, Promise<void>>();

  constructor(
    runtime: Runtime,
    client: EtcdClientLike,
    options: { prefix: string; limitMs: number },
  ) {
    this.runtime = runtime;
    this.server = new EtcdServer(runtime, client, options.limitMs);
    this.keys = new Keys(options.prefix);
    this.departures = new Departures(runtime, this.server);
    this.attempts = new Attempts(runtime, new Lapses(runtime), (entry) => this.lapse(entry));
  }

  async tryAcquire(attempt: LockAttempt): Promise<LockGrant> {
    if (attempt.share !== undefined) throw optionError('share', 'absent on etcd', 'a share');
    return await this.turns.take(attemptId(attempt), () => this.acquire(attempt));
  }

  async renew(attempts: readonly LockAttempt[]): Promise<readonly LockAnswer[]> {
    const held: Entry[] = [];
    for (const attempt of attempts) {
      const entry = this.attempts.get(attempt);
      if (entry?.held !== true) continue;
      if (this.attempts.isDue(entry))
        this.lapse(entry); // Its timer is late.
      else held.push(await this.fitted(entry, attempt));
    }
    const alive = await this.stillOurs(held);
    return await Promise.all(
      attempts.map(async (attempt) => {
        const entry = this.attempts.get(attempt);
        if (entry !== undefined && alive.has(entry)) {
          this.attempts.keepHold(entry, attempt.leaseMs);
          return 'ours';
        }
        if (entry !== undefined && held.includes(entry)) this.lapse(entry);
        return await this.otherHolder(attempt);
      }),
    );
  }

  release(attempt: LockAttempt): Promise<LockAnswer> {
    return this.turns.take(attemptId(attempt), () => this.leave(attempt));
  }

  async inspect(name: string): Promise<LockState | undefined> {
    await this.ending.get(name);
    const queue = this.keys.queue(name);
    const count = { request_range: { ...queue, count_only: true } };
    const { responses } = await this.server.txn({ success: [readFirst(queue), count] });
    const first = responses[0]?.response_range.kvs[0];
    if (first === undefined) return undefined;
    const owner = ownerOf(first);
    const remainingMs =
      this.attempts.leftMs({ name, owner }) ?? (await this.server.leaseLeftMs(first.lease));
    if (remainingMs <= 0) return undefined;
    return {
      name,
      owner,
      fence: BigInt(first.create_revision),
      remainingMs,
      holders: 1,
      waiters: Number(responses[1]?.response_range.count) - 1,
    };
  }

  async forceRelease(name: string): Promise<'released' | 'free'> {
    const queue = this.keys.queue(name);
    const { responses } = await this.server.txn({
      success: [{ request_range: queue }, { request_delete_range: queue }],
    });
    const kvs = responses[0]?.response_range.kvs ?? [];
    for (const { lease } of kvs) this.revokeSoon(lease);
    return kvs.length === 0 ? 'free' : 'released';
  }

  /** @returns the end of watching */
  watch(attempt: LockAttempt, onPush: (granted?: LockGranted) => void): () => void {
    const id = attemptId(attempt);
    const unwatch = this.followers.add(id, () => onPush());
    const entry = this.attempts.get(attempt);
    if (entry?.held === true) this.followKey(id, this.keys.own(entry), entry.revision as string);
    else if (entry !== undefined) this.followAhead(attempt, entry.revision);
    return unwatch;
  }

  private async acquire(attempt: LockAttempt): Promise<LockGrant> {
    await this.ending.get(attempt.name);
    for (let race = 0; race < raceMax; race++) {
      let entry = this.attempts.get(attempt);
      let standing: Standing;
      if (entry === undefined) {
        const held = attempt.queueMs === undefined ? await this.holderNow(attempt) : undefined;
        if (held !== undefined) return held;
        entry = await this.enter(attempt);
        standing = await this.join(attempt, entry);
      } else if (entry.held) {
        standing = await this.read(attempt);
      } else {
        // Also fills the lease up, so that a grant now has all of it.
        const alive = await this.server.keepAlive([entry.leaseId]);
        if (!alive.has(entry.leaseId)) {
          this.lapse(entry); // It ended while we waited: the place is lost with it.
          continue;
        }
        standing = await this.join(attempt, entry);
      }
      const grant = await this.judge(attempt, entry, standing);
      if (grant !== undefined) return grant;
    }
    throw new TurngateError('STORE_UNAVAILABLE', 'etcd: our key keeps vanishing');
  }

  /** For an attempt that does not queue: no lease for nothing. */
  private async holderNow(attempt: LockAttempt): Promise<LockGrant | undefined> {
    const { own, first } = await this.read(attempt);
    if (own !== undefined || first === undefined) return undefined;
    this.followAhead(attempt, undefined);
    return { kind: 'held', remainingMs: this.remainingMs(attempt.name, first) };
  }

  private async enter(attempt: LockAttempt): Promise<Entry> {
    // A place must outlive the pauses between two tries, a grant its lease.
    const ttlMs = Math.max(attempt.leaseMs, attempt.queueMs ?? 0);
    const entry = new Entry(attempt, newLeaseId(this.runtime), ttlMs);
    this.attempts.add(entry);
    try {
      await this.server.grantLease(entry.leaseId, ttlMs);
    } catch (error) {
      this.lapse(entry);
      throw error;
    }
    return entry;
  }

  /** Puts our key if it is not there; says where it stands. */
  private async join(attempt: LockAttempt, entry: Entry): Promise<Standing> {
    const key = this.keys.own(attempt);
    const queue = this.keys.queue(attempt.name);
    const queues = attempt.queueMs !== undefined;
    const value = Buffer.from(String(attempt.leaseMs));
    const read = [{ request_range: { key } }, readFirst(queue)];
    const reply = await this.server.txn({
      // Without queueing the name must be free, or this one try would be in somebody's way.
      compare: [createdAt(queues ? { key } : queue, 0)],
      success: [{ request_put: { key, value, lease: entry.leaseId } }, ...read],
      failure: read,
    });
    const responses = reply.succeeded ? reply.responses.slice(1) : reply.responses;
    return standingOf(responses);
  }

  private async read(attempt: LockAttempt): Promise<Standing> {
    const key = this.keys.own(attempt);
    const first = readFirst(this.keys.queue(attempt.name));
    const { responses } = await this.server.txn({ success: [{ request_range: { key } }, first] });
    return standingOf(responses);
  }

  /** Turns what was read into an answer; undefined when our key has gone and all starts again. */
  private async judge(
    attempt: LockAttempt,
    entry: Entry,
    { own, first }: Standing,
  ): Promise<LockGrant | undefined> {
    // It may have lapsed while we looked.
    if (!this.attempts.isCurrent(entry)) return undefined;
    if (own === undefined || first === undefined || own.lease !== entry.leaseId) {
      this.lapse(entry);
      if (first === undefined || attempt.queueMs !== undefined) return undefined;
      this.followAhead(attempt, undefined);
      return { kind: 'held', remainingMs: this.remainingMs(entry.name, first) };
    }
    entry.revision = own.create_revision;
    if (first.create_revision === own.create_revision) {
      if (!entry.held) {
        entry.held = true;
        this.attempts.keepHold(entry, attempt.leaseMs);
      }
      return { kind: 'granted', fence: BigInt(own.create_revision) };
    }
    this.attempts.keepPlace(entry, attempt.queueMs ?? 0);
    this.followAhead(attempt, entry.revision);
    return { kind: 'held', remainingMs: this.remainingMs(entry.name, first) };
  }

  /** Waits for the end of whoever is right in front: that is our turn. */
  private followAhead(attempt: LockAttempt, revision: string | undefined): void {
    const id = attemptId(attempt);
    if (!this.followers.wanting(id)) return;
    const queue = this.keys.queue(attempt.name);
    const request = revision === undefined ? readFirst(queue) : readBefore(queue, revision);
    this.server.txn({ success: [request] }).then(
      ({ header, responses }) => {
        const kv = responses[0]?.response_range.kvs[0];
        if (kv === undefined) this.followers.push(id);
        else this.followKey(id, Buffer.from(kv.key), header.revision);
      },
      () => {}, // A push that is lost: callers also try by themselves.
    );
  }

  private followKey(id: string, key: Buffer, seenAt: string): void {
    this.followers.follow(id, key.toString(), (onGone) => this.departures.add(key, seenAt, onGone));
  }

  /** An entry whose lease is long enough for what the renewal asks. */
  private async fitted(entry: Entry, { leaseMs }: LockAttempt): Promise<Entry> {
    if (secondsOf(leaseMs) <= secondsOf(entry.ttlMs)) return entry;
    const leaseId = newLeaseId(this.runtime);
    await this.server.grantLease(leaseId, leaseMs);
    const key = this.keys.own(entry);
    const value = Buffer.from(String(leaseMs));
    const { succeeded } = await this.server.txn({
      compare: [createdAt({ key }, entry.revision as string)],
      success: [{ request_put: { key, value, lease: leaseId } }],
    });
    this.revokeSoon(succeeded ? entry.leaseId : leaseId);
    if (succeeded) Object.assign(entry, { leaseId, ttlMs: leaseMs });
    return entry;
  }

  /** Fills the leases up and looks whether the keys are still the ones we were granted. */
  private async stillOurs(held: readonly Entry[]): Promise<ReadonlySet<Entry>> {
    const alive = await this.server.keepAlive(held.map(({ leaseId }) => leaseId));
    const living = held.filter(({ leaseId }) => alive.has(leaseId));
    const replies = await this.server.readAll(
      living.map((entry) => ({ request_range: { key: this.keys.own(entry) } })),
    );
    return new Set(
      living.filter((entry, i) => {
        const kv = replies[i]?.response_range.kvs[0];
        const still = this.attempts.isCurrent(entry);
        return still && kv !== undefined && kv.create_revision === entry.revision;
      }),
    );
  }

  private async leave(attempt: LockAttempt): Promise<LockAnswer> {
    const entry = this.attempts.get(attempt);
    const key = this.keys.own(attempt);
    if (entry?.held === true && !this.attempts.isDue(entry)) {
      const { succeeded } = await this.server.txn({
        compare: [createdAt({ key }, entry.revision as string)],
        success: [{ request_delete_range: { key } }],
      });
      this.attempts.forget(entry);
      this.revokeSoon(entry.leaseId);
      this.departures.gone(key);
      return succeeded ? 'ours' : await this.otherHolder(attempt);
    }
    if (entry !== undefined) {
      this.attempts.forget(entry);
      // First the lease: a put that is still under way can then never succeed.
      await this.server.revokeLease(entry.leaseId);
      this.departures.gone(key);
      return await this.otherHolder(attempt);
    }
    const { own, first } = await this.read(attempt);
    if (own === undefined) return first === undefined ? 'expired' : 'taken';
    await this.server.revokeLease(own.lease);
    return first?.create_revision === own.create_revision ? 'ours' : 'taken';
  }

  /** Of an attempt that is not the holder: has somebody else taken the lock? */
  private async otherHolder(attempt: LockAttempt): Promise<LockAnswer> {
    await this.ending.get(attempt.name);
    const { first } = await this.read(attempt);
    return first === undefined || ownerOf(first) === attempt.owner ? 'expired' : 'taken';
  }

  /** Not repeated or renewed in time, or ended by the server: nothing may stay behind. */
  private lapse(entry: Entry): void {
    const { name } = entry;
    this.attempts.forget(entry);
    const ending = this.server.revokeLease(entry.leaseId).then(
      () => this.departures.gone(this.keys.own(entry)),
      () => {}, // The server ends it by itself.
    );
    const tail: Promise<void> = Promise.all([this.ending.get(name), ending]).then(() => {
      if (this.ending.get(name) === tail) this.ending.delete(name);
    });
    this.ending.set(name, tail);
  }

  private revokeSoon(leaseId: string): void {
    this.server.revokeLease(leaseId).catch(() => {});
  }

  /** Exact for our own holds; for another process's the most it can be. */
  private remainingMs(name: string, first: EtcdKeyValueLike): number {
    return this.attempts.leftMs({ name, owner: ownerOf(first) }) ?? leaseMsOf(first);
  }
}

function standingOf(
  responses: readonly { readonly response_range: { readonly kvs: readonly EtcdKeyValueLike[] } }[],
): Standing {
  const [own, first] = responses.map(({ response_range }) => response_range.kvs[0]);
  return { own, first };
}

/** 63 random bits; 0 would let etcd choose. */
function newLeaseId(runtime: Runtime): string {
  const bytes = Buffer.from(runtime.randomId(), 'base64url');
  return String((bytes.readBigUInt64BE() >> 1n) | 1n);
}
