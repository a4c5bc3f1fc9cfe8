/** Try and release of a mutex: with a command of their own, or with others in one. */
import type { LockAnswer, LockAttempt, LockGrant } from '../../contract/lock-store.ts';
import type { BatchKind } from './batch.ts';
import type { RedisDriver } from './driver.ts';
import type { LockKeys } from './keys.ts';
import { answerOf, toGrant } from './replies.ts';
import { runScript } from './run-script.ts';
import * as lua from './scripts.generated.ts';

/** A try. */
export interface Try {
  readonly attempt: LockAttempt;
  /** Where its process listens; empty when it does not. */
  readonly address: string;
  /** What becomes of the answer, in the same promise: most processes never wait. */
  readonly onGrant: (grant: LockGrant) => LockGrant | Promise<LockGrant>;
}

/** Takes the lock, or a place in its queue. */
export class Tries implements BatchKind<Try, LockGrant> {
  readonly several = lua.trySeveralScript;
  private readonly driver: RedisDriver;
  private readonly keys: LockKeys;

  constructor(driver: RedisDriver, keys: LockKeys) {
    this.driver = driver;
    this.keys = keys;
  }

  alone({ attempt, address, onGrant }: Try): Promise<LockGrant> {
    const { name, owner, leaseMs, fences = 1, queueMs = 0 } = attempt;
    const args = ['', '4', ...this.keys.mutex(name), owner];
    args.push(String(leaseMs), String(fences), String(queueMs), address);
    return runScript(this.driver, lua.tryScript, args, (reply) => onGrant(toGrant(reply)));
  }

  argsOf(asks: readonly Try[]): string[] {
    const args = ['', String(4 * asks.length)];
    const asked: (string | string[])[] = [];
    let last: Try | undefined;
    for (const ask of asks) {
      const { attempt, address } = ask;
      args.push(...this.keys.mutex(attempt.name));
      if (last === undefined || !sameTerms(last, ask)) {
        const { leaseMs, fences = 1, queueMs = 0 } = attempt;
        asked.push([String(leaseMs), String(fences), String(queueMs), address]);
      }
      asked.push(attempt.owner);
      last = ask;
    }
    args.push(JSON.stringify(asked));
    return args;
  }

  answerTo({ onGrant }: Try, reply: unknown): LockGrant | Promise<LockGrant> {
    return onGrant(toGrant(reply));
  }
}

function sameTerms(one: Try, other: Try): boolean {
  return (
    one.attempt.leaseMs === other.attempt.leaseMs &&
    one.attempt.fences === other.attempt.fences &&
    one.attempt.queueMs === other.attempt.queueMs &&
    one.address === other.address
  );
}

/** Frees the lock, or gives up a place in its queue. */
export class Releases implements BatchKind<LockAttempt, LockAnswer> {
  readonly several = lua.releaseSeveralScript;
  private readonly driver: RedisDriver;
  private readonly keys: LockKeys;

  constructor(driver: RedisDriver, keys: LockKeys) {
    this.driver = driver;
    this.keys = keys;
  }

  alone({ name, owner }: LockAttempt): Promise<LockAnswer> {
    const args = ['', '4', ...this.keys.mutex(name), owner];
    return runScript(this.driver, lua.releaseScript, args, answerOf);
  }

  argsOf(attempts: readonly LockAttempt[]): string[] {
    const args = ['', String(4 * attempts.length)];
    for (const { name } of attempts) args.push(...this.keys.mutex(name));
    args.push(JSON.stringify(attempts.map(({ owner }) => owner)));
    return args;
  }

  answerTo(_: LockAttempt, reply: unknown): LockAnswer {
    return answerOf(reply);
  }
}
