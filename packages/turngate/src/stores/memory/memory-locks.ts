/** Locks between the flows of one process: the readable specification of the lock contract. */
import type {
  LockAnswer,
  LockAttempt,
  LockGrant,
  LockGranted,
  LockState,
  LockStore,
} from '../../contract/lock-store.ts';
import { type Runtime, systemRuntime } from '../../runtime/runtime.ts';

interface Holder {
  readonly owner: string;
  readonly take: number;
  readonly fence: bigint;
  expiresAtMonoMs: number;
}

interface Place {
  attempt: LockAttempt;
  lapsesAtMonoMs: number;
}

interface Name {
  /** Live holders, newest last; one for a mutex. */
  holders: Holder[];
  /** Urgent ones first, then in order of arrival. */
  queue: Place[];
}

type OnPush = (granted?: LockGranted) => void;

const heldByAll = { take: 1, limit: 1 };

/** Keeps locks in this process: they exclude its own flows from each other, nothing else. */
export function memoryLocks(options: { readonly runtime?: Runtime } = {}): LockStore {
  return new MemoryLocks(options.runtime ?? systemRuntime);
}

class MemoryLocks implements LockStore {
  readonly name = 'memory';
  readonly capabilities = {
    clock: 'process',
    fencing: 'process',
    wakeup: 'push',
    failover: 'not-applicable',
    fairness: 'fifo',
    shares: true,
    fenceBlocks: true,
  } as const;
  private readonly names = new Map<string, Name>();
  /** By owner: one attempt has one watcher. */
  private readonly watchers = new Map<string, OnPush>();
  private readonly runtime: Runtime;
  /** One counter for all names, so that no name leaves anything behind when it is free. */
  private fence = 0;

  constructor(runtime: Runtime) {
    this.runtime = runtime;
  }

  async tryAcquire(attempt: LockAttempt): Promise<LockGrant> {
    return this.acquireNow(attempt);
  }

  async renew(attempts: readonly LockAttempt[]): Promise<readonly LockAnswer[]> {
    return attempts.map((attempt) => {
      const holder = this.holderOf(attempt);
      if (holder === undefined) return this.notOurs(attempt);
      holder.expiresAtMonoMs = this.runtime.monoMs() + attempt.leaseMs;
      return 'ours';
    });
  }

  async release(attempt: LockAttempt): Promise<LockAnswer> {
    return this.releaseNow(attempt);
  }

  async pass(
    attempt: LockAttempt,
    next: LockAttempt,
  ): Promise<{ readonly answer: LockAnswer; readonly grant: LockGrant }> {
    // In this order: whoever waits already goes before `next`.
    const answer = this.releaseNow(attempt);
    return { answer, grant: this.acquireNow(next) };
  }

  async inspect(name: string): Promise<LockState | undefined> {
    const known = this.live(name);
    const newest = known?.holders.at(-1);
    if (known === undefined || newest === undefined) return undefined;
    return {
      name,
      owner: newest.owner,
      fence: newest.fence,
      remainingMs: newest.expiresAtMonoMs - this.runtime.monoMs(),
      holders: known.holders.length,
      waiters: known.queue.length,
    };
  }

  async forceRelease(name: string): Promise<'released' | 'free'> {
    const known = this.live(name);
    if (known === undefined) return 'free';
    this.names.delete(name);
    for (const { attempt } of known.queue) this.watchers.get(attempt.owner)?.();
    return known.holders.length > 0 ? 'released' : 'free';
  }

  watch({ owner }: LockAttempt, onPush: OnPush): () => void {
    this.watchers.set(owner, onPush);
    return () => {
      if (this.watchers.get(owner) === onPush) this.watchers.delete(owner);
    };
  }

  private acquireNow(attempt: LockAttempt): LockGrant {
    const known = this.live(attempt.name);
    if (known === undefined) {
      const fresh: Name = { holders: [], queue: [] };
      this.names.set(attempt.name, fresh);
      return this.grant(fresh, attempt);
    }
    const mine = known.holders.find(({ owner }) => owner === attempt.owner);
    if (mine !== undefined) return { kind: 'granted', fence: mine.fence };
    const at = known.queue.findIndex((place) => place.attempt.owner === attempt.owner);
    const ahead = at >= 0 ? at : this.placeFor(known, attempt);
    if (ahead === 0 && fits(known, attempt)) {
      if (at === 0) known.queue.shift();
      return this.grant(known, attempt);
    }
    const nowMs = this.runtime.monoMs();
    if (attempt.queueMs !== undefined) {
      const place = { attempt, lapsesAtMonoMs: nowMs + attempt.queueMs };
      known.queue.splice(ahead, at >= 0 ? 1 : 0, place);
    }
    return { kind: 'held', remainingMs: Math.max(1, this.freeAtMonoMs(known) - nowMs) };
  }

  /** How many are before a newcomer: all who wait, or only the urgent ones if it is urgent too. */
  private placeFor({ queue }: Name, { share }: LockAttempt): number {
    if (!share?.urgent) return queue.length;
    const calm = queue.findIndex((place) => !place.attempt.share?.urgent);
    return calm < 0 ? queue.length : calm;
  }

  /** When asking again may help: a lease ends, or somebody before us has not come back. */
  private freeAtMonoMs({ holders, queue }: Name): number {
    let atMs = Number.POSITIVE_INFINITY;
    for (const { expiresAtMonoMs } of holders) atMs = Math.min(atMs, expiresAtMonoMs);
    return holders.length > 0 ? atMs : (queue[0]?.lapsesAtMonoMs ?? 0);
  }

  private grant(known: Name, { owner, leaseMs, share, fences = 1 }: LockAttempt): LockGranted {
    // Microseconds of the wall clock, so that fences grow over a restart; the block is reserved.
    this.fence = Math.max(this.fence + 1, Math.trunc(this.runtime.wallMs()) * 1_000);
    const fence = BigInt(this.fence);
    this.fence += fences - 1;
    const expiresAtMonoMs = this.runtime.monoMs() + leaseMs;
    known.holders.push({ owner, take: share?.take ?? 1, fence, expiresAtMonoMs });
    return { kind: 'granted', fence };
  }

  private releaseNow(attempt: LockAttempt): LockAnswer {
    const known = this.live(attempt.name);
    if (known === undefined) return 'expired';
    const { owner } = attempt;
    const at = known.holders.findIndex((holder) => holder.owner === owner);
    const answer = at >= 0 ? 'ours' : this.notOurs(attempt);
    if (at >= 0) known.holders.splice(at, 1);
    const waiting = known.queue.findIndex((place) => place.attempt.owner === owner);
    if (waiting >= 0) known.queue.splice(waiting, 1);
    this.serve(attempt.name, known);
    return answer;
  }

  /** Grants to the heads of the queue while they fit, and tells them. */
  private serve(name: string, known: Name): void {
    for (let head = known.queue[0]; head !== undefined; head = known.queue[0]) {
      if (!fits(known, head.attempt)) return;
      known.queue.shift();
      const granted = this.grant(known, head.attempt);
      this.watchers.get(head.attempt.owner)?.(granted);
    }
    if (known.holders.length === 0) this.names.delete(name);
  }

  private holderOf({ name, owner }: LockAttempt): Holder | undefined {
    return this.live(name)?.holders.find((holder) => holder.owner === owner);
  }

  /** Of a share nobody can say whether somebody else has exactly what we had. */
  private notOurs({ name, share }: LockAttempt): LockAnswer {
    const others = this.live(name)?.holders.length ?? 0;
    return others > 0 && share === undefined ? 'taken' : 'expired';
  }

  /** The name without leases that have ended and places that have lapsed; undefined when free. */
  private live(name: string): Name | undefined {
    const known = this.names.get(name);
    if (known === undefined) return undefined;
    const nowMs = this.runtime.monoMs();
    if (known.holders.some(({ expiresAtMonoMs }) => expiresAtMonoMs <= nowMs)) {
      known.holders = known.holders.filter(({ expiresAtMonoMs }) => expiresAtMonoMs > nowMs);
    }
    if (known.queue.some(({ lapsesAtMonoMs }) => lapsesAtMonoMs <= nowMs)) {
      known.queue = known.queue.filter(({ lapsesAtMonoMs }) => lapsesAtMonoMs > nowMs);
    }
    if (known.holders.length > 0 || known.queue.length > 0) return known;
    this.names.delete(name);
    return undefined;
  }
}

/** Is enough of the name free? The limit of the attempt at hand counts. */
function fits({ holders }: Name, { share }: LockAttempt): boolean {
  const { take, limit } = share ?? heldByAll;
  let taken = 0;
  for (const holder of holders) taken += holder.take;
  return taken + take <= limit;
}
