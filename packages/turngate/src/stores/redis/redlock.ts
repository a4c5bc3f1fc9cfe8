/**
 * A lock held by the majority of independent Redis servers. It survives the loss of a minority. It
 * has no fence: no number that only grows can be agreed on without consensus, so nothing can stop a
 * holder that was paused past its lease from writing.
 */
import type {
  LockAnswer,
  LockAttempt,
  LockCapabilities,
  LockGrant,
  LockState,
  LockStore,
} from '../../contract/lock-store.ts';
import { TurngateError } from '../../core/errors.ts';
import { integerOption, knownOptions, optionError } from '../../core/option.ts';
import { type Runtime, systemRuntime } from '../../runtime/runtime.ts';
import { driverOf, type RedisClient } from './clients.ts';
import type { RedisDriver } from './driver.ts';
import { checkPrefix, LockKeys } from './keys.ts';
import { poll, type Votes } from './quorum.ts';
import { Renewals } from './renewals.ts';
import { answerOf } from './replies.ts';
import { runScript } from './run-script.ts';
import * as lua from './scripts.generated.ts';

/** Options of {@link redlock}. */
export interface RedlockOptions {
  /**
   * Starts every key of ours, after a key prefix of the client.
   *
   * @default 'turngate:'
   */
  readonly prefix?: string;
  /**
   * How long one node may take to answer before it counts as down. Keep it far below the shortest
   * lease: what is spent waiting is taken from the lease.
   *
   * @unit milliseconds, integer, 5 to 10_000
   * @default a twentieth of the lease, from 20 to 500
   */
  readonly nodeLimitMs?: number;
}

/** A lock store without fences. */
export interface UnfencedLockStore extends LockStore {
  readonly capabilities: LockCapabilities & { readonly fencing: 'none' };
}

/**
 * Locks over a quorum of independent servers (Redlock): a lock is held when more than half of *all*
 * nodes given here say so, and only for what is left of the lease after asking them, less 1 % and
 * 2 ms for clock drift.
 *
 * For efficiency, not for correctness: grants carry no fence. Prefer {@link redisLocks} and a checked
 * fence wherever two writers would do harm. A node that forgets its locks in a restart must stay
 * away for the longest lease, or it votes twice; nothing here can see to that.
 *
 * @param clients one per independent server, an odd number of at least 3; you end them
 * @throws OPTION_INVALID before any I/O
 */
export function redlock(
  clients: readonly RedisClient[],
  options: RedlockOptions = {},
): UnfencedLockStore {
  knownOptions('redlock options', options, ['prefix', 'nodeLimitMs']);
  if (!Array.isArray(clients) || clients.length < 3 || new Set(clients).size < clients.length) {
    throw optionError('clients', 'at least 3 clients of different servers', clients);
  }
  const prefix = checkPrefix('prefix', options.prefix ?? 'turngate:');
  const range = { min: 5, max: 10_000, fallback: 0 };
  const nodeLimitMs = integerOption('nodeLimitMs', options.nodeLimitMs, range);
  return new Redlock(clients.map(driverOf), prefix, nodeLimitMs, systemRuntime);
}

/** One node's say about an attempt. */
interface NodeGrant {
  readonly ours: boolean;
  readonly leftMs: number;
}

type QuorumGrant =
  | { readonly kind: 'granted'; readonly leftMs: number }
  | { readonly kind: 'held'; readonly remainingMs: number };

interface Node {
  readonly driver: RedisDriver;
  readonly keys: LockKeys;
  readonly renewals: Renewals;
}

class Redlock implements UnfencedLockStore {
  readonly name = 'redlock';
  readonly capabilities = {
    clock: 'server',
    fencing: 'none',
    wakeup: 'poll',
    failover: 'depends',
    fairness: 'none',
    shares: false,
    fenceBlocks: false,
  } as const;
  private readonly nodes: readonly Node[];
  private readonly quorum: number;
  private readonly nodeLimitMs: number;
  private readonly runtime: Runtime;

  constructor(
    drivers: readonly RedisDriver[],
    prefix: string,
    nodeLimitMs: number,
    runtime: Runtime,
  ) {
    this.nodes = drivers.map((driver) => ({
      driver,
      keys: new LockKeys(driver.prefixesKeys ? prefix : driver.keyPrefix + prefix),
      renewals: new Renewals(driver),
    }));
    // Of the configured nodes, not of those that answer.
    this.quorum = Math.floor(drivers.length / 2) + 1;
    this.nodeLimitMs = nodeLimitMs;
    this.runtime = runtime;
  }

  async tryAcquire(attempt: LockAttempt): Promise<LockGrant> {
    const { name, owner, leaseMs } = attempt;
    const sentMonoMs = this.runtime.monoMs();
    const calls = this.nodes.map(({ driver, keys }) =>
      runScript(
        driver,
        lua.quorumTryScript,
        ['', '1', keys.quorum(name), owner, String(leaseMs)],
        toNodeGrant,
      ),
    );
    try {
      const limitMs = this.limitMs(leaseMs);
      const grant = await poll(this.runtime, calls, limitMs, (votes) => this.grantOf(votes));
      if (grant.kind === 'held') {
        await this.giveBack(attempt);
        return grant;
      }
      // The majority lasts as long as the first of its nodes to let go; a repeat prolongs nothing.
      const validMs = grant.leftMs - (this.runtime.monoMs() - sentMonoMs) - (leaseMs / 100 + 2);
      if (validMs > 0) return { kind: 'granted', fence: 0n };
      const message = 'the quorum answered so late that the lease was over';
      throw new TurngateError('STORE_UNAVAILABLE', message, { retryAfterMs: 250 });
    } catch (error) {
      await this.giveBack(attempt);
      throw error;
    }
  }

  async renew(attempts: readonly LockAttempt[]): Promise<readonly LockAnswer[]> {
    if (attempts.length === 0) return [];
    const limitMs = this.limitMs(Math.min(...attempts.map(({ leaseMs }) => leaseMs)));
    const calls = this.nodes.map(({ renewals, keys }) => {
      const kind = { script: lua.quorumRenewScript, key: (name: string) => keys.quorum(name) };
      return renewals.renew(kind, attempts);
    });
    return await poll(this.runtime, calls, limitMs, ({ answers, errors, open }) => {
      const all = attempts.map((_, i) =>
        this.answerOf({ answers: answers.map((given) => given[i] as LockAnswer), errors, open }),
      );
      return all.includes(undefined) ? undefined : (all as LockAnswer[]);
    });
  }

  async release({ name, owner, leaseMs }: LockAttempt): Promise<LockAnswer> {
    // Every node is told, also those that refused or did not answer: a late grant is freed as well.
    const calls = this.nodes.map(({ driver, keys }) =>
      runScript(driver, lua.quorumReleaseScript, ['', '1', keys.quorum(name), owner], answerOf),
    );
    return await poll(this.runtime, calls, this.limitMs(leaseMs), (votes) => this.answerOf(votes));
  }

  async inspect(name: string): Promise<LockState | undefined> {
    const calls = this.nodes.map(async ({ driver, keys }) => {
      const key = keys.quorum(name);
      const reply = await runScript(
        driver,
        lua.quorumInspectScript,
        ['', '1', key],
        (given) => given,
      );
      const [owner, leftMs] = reply as [unknown, unknown];
      return { owner: owner == null ? '' : String(owner), leftMs: Number(leftMs) };
    });
    const limitMs = this.nodeLimitMs || 500;
    const found = await poll(this.runtime, calls, limitMs, ({ answers, errors, open }) => {
      if (errors.length > this.nodes.length - this.quorum) throw this.down(errors);
      if (open > 0) return undefined;
      for (const { owner } of answers) {
        const same = answers.filter((answer) => answer.owner === owner);
        if (owner !== '' && same.length >= this.quorum) return { owner, leftMs: shortest(same) };
      }
      return { owner: '', leftMs: 0 };
    });
    if (found.owner === '') return undefined;
    return { name, owner: found.owner, fence: 0n, remainingMs: found.leftMs };
  }

  private grantOf({ answers, errors, open }: Votes<NodeGrant>): QuorumGrant | undefined {
    const refused = answers.filter(({ ours }) => !ours);
    const granted = answers.filter(({ ours }) => ours).sort((a, b) => b.leftMs - a.leftMs);
    const decisive = granted[this.quorum - 1];
    if (decisive !== undefined) return { kind: 'granted', leftMs: decisive.leftMs };
    // As soon as it cannot succeed any more: nobody waits for the nodes that are still silent.
    if (granted.length + open >= this.quorum) return undefined;
    if (refused.length === 0) throw this.down(errors);
    return { kind: 'held', remainingMs: shortest(refused) };
  }

  /** Ours only where a majority says so; unknown where errors hide whether it does. */
  private answerOf({ answers, errors, open }: Votes<LockAnswer>): LockAnswer | undefined {
    const ours = answers.filter((answer) => answer === 'ours').length;
    if (ours >= this.quorum) return 'ours';
    if (ours + open >= this.quorum) return undefined;
    if (ours + errors.length >= this.quorum) throw this.down(errors);
    // Not ours for certain. Whose it is does not pay for waiting for nodes that are down.
    if (open > 0 && answers.length < this.quorum) return undefined;
    return answers.includes('taken') ? 'taken' : 'expired';
  }

  /** Frees what a failed try may have left anywhere; how that goes changes nothing for the caller. */
  private async giveBack(attempt: LockAttempt): Promise<void> {
    await this.release(attempt).catch(() => undefined);
  }

  private limitMs(leaseMs: number): number {
    return this.nodeLimitMs || Math.min(500, Math.max(20, Math.round(leaseMs / 20)));
  }

  private down(errors: readonly unknown[]): TurngateError {
    const message = `${errors.length} of ${this.nodes.length} nodes of the quorum did not answer`;
    const detail = { cause: errors[0], outcome: 'unknown' } as const;
    return new TurngateError('STORE_UNAVAILABLE', message, detail);
  }
}

function toNodeGrant(reply: unknown): NodeGrant {
  const [ours, leftMs] = reply as [unknown, unknown];
  return { ours: Number(ours) === 1, leftMs: Number(leftMs) };
}

function shortest(answers: readonly { readonly leftMs: number }[]): number {
  return Math.max(1, Math.min(...answers.map(({ leftMs }) => leftMs)));
}
