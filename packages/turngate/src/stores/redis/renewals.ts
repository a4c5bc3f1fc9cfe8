/** Renewal of many locks with few commands. */
import type { LockAnswer, LockAttempt } from '../../contract/lock-store.ts';
import { askedText } from './asked.ts';
import type { RedisDriver, Script } from './driver.ts';
import { tagOf } from './keys.ts';
import { isCrossSlot, redisError } from './redis-error.ts';
import { answerOf } from './replies.ts';
import { runScript } from './run-script.ts';

/** 128 keys keep the server busy for less than half a millisecond. */
const keysMax = 128;

/** One kind of lock: its renewal script and where its state lies. */
export interface RenewalKind {
  readonly script: Script;
  readonly key: (name: string) => string;
}

/** Sends renewals in groups, all at once; groups never cross slots where slots count. */
export class Renewals {
  private readonly driver: RedisDriver;
  private bySlot: boolean;

  constructor(driver: RedisDriver) {
    this.driver = driver;
    this.bySlot = driver.cluster;
  }

  /** Answers in the order of the attempts. */
  async renew(kind: RenewalKind, attempts: readonly LockAttempt[]): Promise<LockAnswer[]> {
    if (attempts.length === 0) return [];
    try {
      return await this.send(kind, attempts);
    } catch (error) {
      // A proxy in front of a cluster: nothing was done, and from now on we know.
      if (this.bySlot || !isCrossSlot((error as Error).cause ?? error)) throw redisError(error);
      this.bySlot = true;
      return await this.send(kind, attempts);
    }
  }

  private async send(kind: RenewalKind, attempts: readonly LockAttempt[]): Promise<LockAnswer[]> {
    if (!this.bySlot && attempts.length <= keysMax) return await this.sendGroup(kind, attempts);
    const all = new Array<LockAnswer>(attempts.length);
    const sent = this.groups(attempts).map(async (group) => {
      const answered = await this.sendGroup(
        kind,
        group.map((i) => attempts[i] as LockAttempt),
      );
      group.forEach((i, at) => {
        all[i] = answered[at] as LockAnswer;
      });
    });
    await Promise.all(sent);
    return all;
  }

  /** One command. */
  private sendGroup(kind: RenewalKind, group: readonly LockAttempt[]): Promise<LockAnswer[]> {
    const args = ['', String(group.length)];
    for (const { name } of group) args.push(kind.key(name));
    args.push(askedText(group));
    return runScript(this.driver, kind.script, args, (digits) => {
      const text = String(digits);
      return group.map((_, i) => answerOf(text[i]));
    });
  }

  private groups(attempts: readonly LockAttempt[]): number[][] {
    const open = new Map<number, number[]>();
    const groups: number[][] = [];
    attempts.forEach(({ name }, i) => {
      const slot = this.bySlot ? tagOf(name) : 0;
      let group = open.get(slot);
      if (group === undefined || group.length === keysMax) {
        group = [];
        open.set(slot, group);
        groups.push(group);
      }
      group.push(i);
    });
    return groups;
  }
}
