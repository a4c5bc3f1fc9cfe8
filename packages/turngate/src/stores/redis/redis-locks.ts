/**
 * Locks in Redis: one script per verb, the server's clock, a fair queue, and the lock handed by the
 * releasing script to the next in the queue.
 */
import type {
  LockAnswer,
  LockAttempt,
  LockCapabilities,
  LockGrant,
  LockState,
  LockStore,
} from '../../contract/lock-store.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { Batch, type Traffic } from './batch.ts';
import type { RedisDriver } from './driver.ts';
import { Inbox, type OnPush } from './inbox.ts';
import { LockKeys } from './keys.ts';
import { releases, type Try, termsOf, tries } from './mutex.ts';
import { Renewals } from './renewals.ts';
import { type Replicas, ReplicaWait } from './replicas.ts';
import { answerOf, toGrant } from './replies.ts';
import { runScript } from './run-script.ts';
import * as lua from './scripts.generated.ts';
import { warnOfEviction } from './warnings.ts';

/** What {@link RedisLocks} is made of. */
export interface RedisLocksParts {
  readonly driver: RedisDriver;
  readonly runtime: Runtime;
  readonly prefix: string;
  readonly wakeup: 'push' | 'poll';
  readonly replicas: Replicas | undefined;
}

type Watch = (attempt: LockAttempt, onPush: OnPush) => () => void;

const polled: LockCapabilities = {
  clock: 'server',
  fencing: 'failover-safe',
  wakeup: 'poll',
  failover: 'depends',
  fairness: 'fifo',
  shares: true,
  fenceBlocks: true,
};

const pushed: LockCapabilities = { ...polled, wakeup: 'push' };

/** The lock store over any Redis driver. */
export class RedisLocks implements LockStore {
  readonly name = 'redis';
  /** Absent once the server has refused the subscription: waiters then ask more often. */
  watch?: Watch;
  private readonly driver: RedisDriver;
  private readonly keys: LockKeys;
  private readonly inbox: Inbox | undefined;
  private readonly tries: Batch<Try, LockGrant>;
  private readonly releases: Batch<LockAttempt, LockAnswer>;
  private readonly renewals: Renewals;
  private readonly replicas: ReplicaWait | undefined;
  private warned = false;

  constructor({ driver, runtime, prefix, wakeup, replicas }: RedisLocksParts) {
    this.driver = driver;
    this.keys = new LockKeys(driver.prefixesKeys ? prefix : driver.keyPrefix + prefix);
    const traffic: Traffic = {
      underWay: 0,
      crowded: false,
      unwritten: false,
      bySlot: driver.cluster,
    };
    this.tries = new Batch(driver, traffic, tries(this.keys));
    this.releases = new Batch(driver, traffic, releases(this.keys));
    this.renewals = new Renewals(driver);
    if (replicas !== undefined) this.replicas = new ReplicaWait(driver, replicas);
    if (wakeup === 'push') {
      // Channels are never prefixed by a client.
      const channel = new LockKeys(driver.keyPrefix + prefix).inbox(runtime.randomId());
      // A grant that was made for us has not waited for the replicas: with them everybody asks.
      const canHear = !driver.cluster && replicas === undefined;
      const inbox = new Inbox(driver, runtime, channel, canHear);
      this.inbox = inbox;
      this.watch = (attempt, onPush) => inbox.watch(attempt.owner, onPush);
      inbox.onEnd = () => {
        delete this.watch;
      };
    }
  }

  get capabilities(): LockCapabilities {
    return this.watch === undefined ? polled : pushed;
  }

  tryAcquire(attempt: LockAttempt): Promise<LockGrant> {
    if (!this.warned) this.warnOnce();
    const { inbox } = this;
    if (inbox === undefined || attempt.queueMs === undefined) return this.send(attempt, '');
    const address = inbox.givenAddress;
    if (address !== '') return this.send(attempt, address);
    const listen = (grant: LockGrant): LockGrant | Promise<LockGrant> =>
      grant.kind === 'granted' ? grant : this.tryListening(attempt, grant, inbox);
    if (this.replicas !== undefined) return this.send(attempt, '').then(listen);
    // Not a second promise: most processes never wait, and all their grants come this way.
    return this.send(attempt, '', listen);
  }

  /** The try that counts is the one after the subscription: before it a grant was not heard. */
  private async tryListening(
    attempt: LockAttempt,
    refused: LockGrant,
    inbox: Inbox,
  ): Promise<LockGrant> {
    if (!(await inbox.open())) return refused;
    return await this.send(attempt, inbox.givenAddress);
  }

  async renew(attempts: readonly LockAttempt[]): Promise<readonly LockAnswer[]> {
    const isShare = ({ share }: LockAttempt): boolean => share !== undefined;
    if (!attempts.some(isShare)) return await this.renewals.renew(this.mutexKind, attempts);
    const shares = attempts.filter(isShare);
    const others = attempts.filter((attempt) => !isShare(attempt));
    const [ofShares, ofOthers] = await Promise.all([
      this.renewals.renew(this.shareKind, shares),
      this.renewals.renew(this.mutexKind, others),
    ]);
    return attempts.map(
      (attempt) => (isShare(attempt) ? ofShares.shift() : ofOthers.shift()) as LockAnswer,
    );
  }

  release(attempt: LockAttempt): Promise<LockAnswer> {
    const { name, owner, share } = attempt;
    if (share === undefined) return this.releases.ask(attempt);
    const args = ['', '5', ...this.keys.shares(name), owner];
    return runScript(this.driver, lua.shareReleaseScript, args, answerOf);
  }

  async pass(
    attempt: LockAttempt,
    next: LockAttempt,
  ): Promise<{ readonly answer: LockAnswer; readonly grant: LockGrant }> {
    // WAIT needs a grant of its own; shares and other names are two steps.
    const together = attempt.name === next.name && attempt.share === undefined;
    if (!together || next.share !== undefined || this.replicas !== undefined) {
      const answer = await this.release(attempt);
      return { answer, grant: await this.tryAcquire(next) };
    }
    const address = next.queueMs === undefined ? '' : (this.inbox?.givenAddress ?? '');
    const args = [
      '',
      '4',
      ...this.keys.mutex(attempt.name),
      attempt.owner,
      next.owner,
      ...termsOf(next, address),
    ];
    const passed = await runScript(this.driver, lua.passScript, args, (reply) => {
      const [answer, grant] = reply as [unknown, unknown];
      return { answer: answerOf(answer), grant: toGrant(grant) };
    });
    const { grant } = passed;
    if (grant.kind === 'granted' || next.queueMs === undefined || address !== '') return passed;
    return { answer: passed.answer, grant: await this.tryAcquire(next) };
  }

  inspect(name: string): Promise<LockState | undefined> {
    const [lock, , waiters] = this.keys.mutex(name);
    const [shares] = this.keys.shares(name);
    return runScript(this.driver, lua.inspectScript, ['', '3', lock, waiters, shares], (reply) => {
      const [owner, fence, remainingMs, holders, waiting] = reply as unknown[];
      if (owner === undefined) return undefined;
      return {
        name,
        owner: String(owner),
        fence: BigInt(String(fence)),
        remainingMs: Number(remainingMs),
        holders: Number(holders),
        waiters: Number(waiting),
      };
    });
  }

  forceRelease(name: string): Promise<'released' | 'free'> {
    const [shares, , urgent] = this.keys.shares(name);
    const args = ['', '6', ...this.keys.mutex(name), shares, urgent];
    return runScript(this.driver, lua.forceScript, args, (reply) =>
      Number(reply) === 1 ? 'released' : 'free',
    );
  }

  /** Ends the subscribing connection if one was opened. The client passed in stays yours. */
  close(): void {
    this.inbox?.close();
  }

  private readonly mutexKind = {
    script: lua.renewScript,
    key: (name: string) => this.keys.lock(name),
  };

  private readonly shareKind = {
    script: lua.shareRenewScript,
    key: (name: string) => this.keys.shares(name)[0],
  };

  private send(
    attempt: LockAttempt,
    address: string,
    onGrant: Try['onGrant'] = asItIs,
  ): Promise<LockGrant> {
    const { name, share } = attempt;
    let granted: Promise<LockGrant>;
    if (share === undefined) {
      const ask = { attempt, address, onGrant };
      // WAIT counts what was sent before it on the connection: the try must have left.
      granted = this.replicas === undefined ? this.tries.ask(ask) : this.tries.alone(ask);
    } else {
      const { take, limit, urgent } = share;
      const size = [String(take), String(limit), urgent ? '1' : '0'];
      const wish = [attempt.owner, ...termsOf(attempt, address)];
      const args = ['', '5', ...this.keys.shares(name), ...wish, ...size];
      granted = runScript(this.driver, lua.shareTryScript, args, (reply) =>
        onGrant(toGrant(reply)),
      );
    }
    if (this.replicas === undefined) return granted;
    return this.replicas.after(granted, () => this.release(attempt));
  }

  private warnOnce(): void {
    this.warned = true;
    warnOfEviction(this.driver, this.name);
  }
}

const asItIs: Try['onGrant'] = (grant) => grant;
