/** What is asked of many locks within one tick leaves as one command. */
import type { RedisDriver, Script } from './driver.ts';
import { isCrossSlot, redisError } from './redis-error.ts';
import { runScript } from './run-script.ts';

/** One verb, asked of one lock or of several. */
export interface BatchKind<Ask, Answer> {
  readonly one: Script;
  /** Replies a list of what `one` replies, which ends before the first ask that failed. */
  readonly several: Script;
  /** Arguments of a script, with a place for its digest. */
  oneArgs(ask: Ask): string[];
  severalArgs(asks: readonly Ask[]): string[];
  answerTo(ask: Ask, reply: unknown): Answer | Promise<Answer>;
}

/** What the batches of one client know together. */
export interface Traffic {
  /** How many commands have no answer yet. */
  underWay: number;
  /** Slots count: the keys of two locks may lie in different ones. */
  bySlot: boolean;
}

interface Waiting<Ask, Answer> {
  readonly ask: Ask;
  readonly resolve: (answer: Answer | Promise<Answer>) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * While nothing is under way an ask leaves at once, so that a lone one pays nothing; else it waits
 * for the end of the tick. A client and a server spend most of their time per command, not per lock.
 */
export class Batch<Ask, Answer> {
  private readonly driver: RedisDriver;
  private readonly traffic: Traffic;
  private readonly kind: BatchKind<Ask, Answer>;
  private waiting: Waiting<Ask, Answer>[] = [];

  constructor(driver: RedisDriver, traffic: Traffic, kind: BatchKind<Ask, Answer>) {
    this.driver = driver;
    this.traffic = traffic;
    this.kind = kind;
  }

  /** @throws STORE_UNAVAILABLE */
  ask(ask: Ask): Promise<Answer> {
    const { bySlot, underWay } = this.traffic;
    if (bySlot || underWay === 0) return this.alone(ask);
    return new Promise((resolve, reject) => {
      const waiting = this.waiting.push({ ask, resolve, reject });
      if (waiting === 1) process.nextTick(this.send);
      else if (waiting === this.driver.locksPerCommand) {
        this.send();
        this.driver.flush();
      }
    });
  }

  /** With a command of its own, now. */
  alone(ask: Ask): Promise<Answer> {
    const { driver, kind, traffic } = this;
    traffic.underWay++;
    const answer = runScript(driver, kind.one, kind.oneArgs(ask), (reply) =>
      kind.answerTo(ask, reply),
    );
    answer.then(this.arrived, this.arrived);
    return answer;
  }

  private readonly arrived = (): void => {
    this.traffic.underWay--;
  };

  private readonly send = (): void => {
    const sent = this.waiting;
    const [first] = sent;
    if (first === undefined) return;
    this.waiting = [];
    if (sent.length === 1) {
      first.resolve(this.alone(first.ask));
      return;
    }
    this.traffic.underWay++;
    const args = this.kind.severalArgs(sent.map(({ ask }) => ask));
    runScript(this.driver, this.kind.several, args, (reply) => reply as unknown[]).then(
      (replies) => {
        this.arrived();
        sent.forEach(({ ask, resolve }, i) => {
          // What failed is asked once more by itself, for the error that is its own.
          resolve(i < replies.length ? this.kind.answerTo(ask, replies[i]) : this.alone(ask));
        });
      },
      (error: Error) => {
        this.arrived();
        // A proxy in front of a cluster: nothing was done, and from now on we know.
        if (isCrossSlot(error.cause)) {
          this.traffic.bySlot = true;
          for (const { ask, resolve } of sent) resolve(this.alone(ask));
        } else {
          for (const { reject } of sent) reject(redisError(error.cause));
        }
      },
    );
  };
}
