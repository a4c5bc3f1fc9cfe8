/** What is asked of many locks within one tick leaves as one command. */
import type { TurngateError } from '../../core/errors.ts';
import { nextTurn } from '../../runtime/next-turn.ts';
import type { RedisDriver, Script } from './driver.ts';
import { isCrossSlot, redisError } from './redis-error.ts';
import { runScript } from './run-script.ts';

/** One verb, asked of one lock or of several. */
export interface BatchKind<Ask, Answer> {
  readonly one: Script;
  /** Replies a list: what `one` replies, alike for all, then the numbers of asks only `one` can do. */
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
  /** The last command was about several locks: the next ask is hardly a lone one. */
  crowded: boolean;
  /** A full command waits for the client to write it. */
  unwritten: boolean;
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
    const { bySlot, crowded, underWay, unwritten } = this.traffic;
    if (bySlot || (underWay === 0 && !crowded)) return this.alone(ask);
    return new Promise((resolve, reject) => {
      const waiting = this.waiting.push({ ask, resolve, reject });
      if (waiting === 1) process.nextTick(this.endTick);
      else if (waiting === this.driver.locksPerCommand && !unwritten) {
        this.send();
        if (!this.driver.flush()) this.awaitWrite();
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

  /** What is asked until then goes with the next write, so that the server has both to do. */
  private awaitWrite(): void {
    this.traffic.unwritten = true;
    nextTurn(() => {
      this.traffic.unwritten = false;
    });
  }

  private readonly arrived = (): void => {
    this.traffic.underWay--;
  };

  private readonly endTick = (): void => {
    // The client writes in the next turn.
    if (this.traffic.unwritten) nextTurn(() => nextTurn(this.send));
    else this.send();
  };

  private readonly send = (): void => {
    const { locksPerCommand } = this.driver;
    while (this.waiting.length > locksPerCommand) {
      this.together(this.waiting.splice(0, locksPerCommand));
    }
    const sent = this.waiting;
    const [first] = sent;
    if (first === undefined) return;
    this.waiting = [];
    this.traffic.crowded = sent.length > 1;
    if (sent.length > 1) this.together(sent);
    else first.resolve(this.alone(first.ask));
  };

  private together(sent: readonly Waiting<Ask, Answer>[]): void {
    this.traffic.underWay++;
    const args = this.kind.severalArgs(sent.map(({ ask }) => ask));
    runScript(this.driver, this.kind.several, args, (reply) => reply as number[]).then(
      (reply) => this.answered(sent, reply),
      (error: TurngateError) => this.failed(sent, error),
    );
  }

  private answered(sent: readonly Waiting<Ask, Answer>[], reply: readonly unknown[]): void {
    this.arrived();
    // Those left to `one` come in the order of the asks.
    let at = 1;
    sent.forEach(({ ask, resolve }, i) => {
      const left = at < reply.length && Number(reply[at]) === i + 1;
      if (left) at++;
      resolve(left ? this.alone(ask) : this.kind.answerTo(ask, reply[0]));
    });
  }

  private failed(sent: readonly Waiting<Ask, Answer>[], { outcome, cause }: TurngateError): void {
    this.arrived();
    // A proxy in front of a cluster: from now on we know.
    if (isCrossSlot(cause)) this.traffic.bySlot = true;
    for (const { ask, resolve, reject } of sent) {
      // What the server refuses to all of them is perhaps not to be refused to each.
      if (outcome === 'not-applied') resolve(this.alone(ask));
      else reject(redisError(cause));
    }
  }
}
