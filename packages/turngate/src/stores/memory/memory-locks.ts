/** Locks between the flows of one process: the readable specification of the lock contract. */
import type {
  LockAnswer,
  LockAttempt,
  LockGrant,
  LockState,
  LockStore,
} from '../../contract/lock-store.ts';
import { type Runtime, systemRuntime } from '../../runtime/runtime.ts';

interface Held {
  readonly owner: string;
  readonly fence: bigint;
  expiresAtMonoMs: number;
}

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
  } as const;
  private readonly held = new Map<string, Held>();
  private readonly watchers = new Map<string, Set<() => void>>();
  private readonly runtime: Runtime;
  /** One counter for all names, so that no name leaves anything behind when it is free. */
  private fence = 0n;

  constructor(runtime: Runtime) {
    this.runtime = runtime;
  }

  async tryAcquire({ name, owner, leaseMs }: LockAttempt): Promise<LockGrant> {
    const nowMs = this.runtime.monoMs();
    const current = this.held.get(name);
    if (current !== undefined && current.expiresAtMonoMs > nowMs) {
      if (current.owner === owner) return { kind: 'granted', fence: current.fence };
      return { kind: 'held', remainingMs: current.expiresAtMonoMs - nowMs };
    }
    const microseconds = BigInt(Math.trunc(this.runtime.wallMs())) * 1000n;
    this.fence = this.fence + 1n > microseconds ? this.fence + 1n : microseconds;
    this.held.set(name, { owner, fence: this.fence, expiresAtMonoMs: nowMs + leaseMs });
    return { kind: 'granted', fence: this.fence };
  }

  async renew(attempts: readonly LockAttempt[]): Promise<readonly LockAnswer[]> {
    return attempts.map(({ name, owner, leaseMs }) => {
      const answer = this.answer(name, owner);
      if (answer === 'ours') {
        (this.held.get(name) as Held).expiresAtMonoMs = this.runtime.monoMs() + leaseMs;
      }
      return answer;
    });
  }

  async release({ name, owner }: { name: string; owner: string }): Promise<LockAnswer> {
    const answer = this.answer(name, owner);
    if (answer === 'taken') return answer;
    this.held.delete(name);
    for (const onFree of this.watchers.get(name) ?? []) onFree();
    return answer;
  }

  async inspect(name: string): Promise<LockState | undefined> {
    const held = this.held.get(name);
    const remainingMs = held === undefined ? 0 : held.expiresAtMonoMs - this.runtime.monoMs();
    if (held === undefined || remainingMs <= 0) return undefined;
    return { name, owner: held.owner, fence: held.fence, remainingMs };
  }

  watch(name: string, onFree: () => void): () => void {
    const watchers = this.watchers.get(name) ?? new Set();
    this.watchers.set(name, watchers.add(onFree));
    return () => {
      watchers.delete(onFree);
      if (watchers.size === 0) this.watchers.delete(name);
    };
  }

  private answer(name: string, owner: string): LockAnswer {
    const current = this.held.get(name);
    if (current === undefined) return 'expired';
    const live = current.expiresAtMonoMs > this.runtime.monoMs();
    if (current.owner !== owner) return live ? 'taken' : 'expired';
    return live ? 'ours' : 'expired';
  }
}
