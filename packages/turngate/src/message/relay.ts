/**
 * The relay: hands committed messages to a broker. A lane (all messages of one key) is leased as a
 * whole, so its messages go out one after the other whichever process does it. Sent outside any
 * transaction, marked after the broker's answer: a crash between repeats a message under its old id.
 */
import type { SqlDatabase } from '../contract/sql-session.ts';
import { functionOption, integerOption, knownOptions, wordOption } from '../core/option.ts';
import { sqlNowMs } from '../core/sql-text.ts';
import { emit } from '../runtime/events.ts';
import { attemptIds, type Runtime, systemRuntime, type Timer } from '../runtime/runtime.ts';
import { backoffMs } from '../runtime/wait.ts';
import type { Message, Publisher } from './message.ts';

/** How a relay works. */
export interface RelayOptions {
  readonly database: SqlDatabase;
  readonly publisher: Publisher;
  /** Only this topic; default: all. */
  readonly topic?: string;
  /**
   * A lane stays with this process for so long; longer than the slowest batch.
   *
   * @unit milliseconds, integer, 1_000 to 3_600_000
   * @default 30_000
   */
  readonly leaseMs?: number;
  /**
   * Messages of a lane that are sent under one lease.
   *
   * @unit messages, integer, 1 to 1_000
   * @default 100
   */
  readonly batchMessages?: number;
  /**
   * After so many failures of its head a lane is stuck: `block` waits for an operator, `skip` parks
   * the head and goes on (never for money: the order is broken).
   *
   * @default 'block'
   */
  readonly onPoison?: 'block' | 'skip';
  /**
   * @unit failures, integer, 1 to 1_000
   * @default 20
   */
  readonly failuresMax?: number;
  readonly runtime?: Runtime;
}

/** A running relay. */
export interface Relay {
  /** One round: sends what is waiting; returns how many messages went out. */
  drain(): Promise<number>;
  /**
   * Sends again and again; {@link Relay.wake} makes it look at once.
   *
   * @unit everyMs: milliseconds, integer, 20 to 600_000; default 500
   */
  start(everyMs?: number): void;
  wake(): void;
  /** Ends after the batch at hand. */
  stop(): Promise<void>;
}

const known = [
  'database',
  'publisher',
  'topic',
  'leaseMs',
  'batchMessages',
  'onPoison',
  'failuresMax',
  'runtime',
];
const lanesPerRound = 32;
const failurePause = { baseMs: 200, capMs: 60_000 };

/** @throws OPTION_INVALID before any I/O */
export function createRelay(options: RelayOptions): Relay {
  knownOptions('relay options', options, known);
  functionOption('publisher.publish', options.publisher.publish);
  return new LaneRelay(options);
}

interface Lane {
  readonly topic: string;
  readonly lane: string;
  readonly sent: number;
  readonly failures: number;
}

class LaneRelay implements Relay {
  private readonly database: SqlDatabase;
  private readonly publisher: Publisher;
  private readonly topic: string | undefined;
  private readonly leaseMs: number;
  private readonly batchMessages: number;
  private readonly failuresMax: number;
  private readonly skips: boolean;
  private readonly runtime: Runtime;
  private readonly owner: string;
  private readonly now: string;
  private timer: Timer | undefined;
  private round: Promise<void> | undefined;
  private again = false;
  private stopped = false;
  private everyMs = 500;

  constructor(options: RelayOptions) {
    const number = (
      option: 'leaseMs' | 'batchMessages' | 'failuresMax',
      min: number,
      max: number,
      fallback: number,
    ): number => integerOption(option, options[option], { min, max, fallback });
    this.database = options.database;
    this.publisher = options.publisher;
    this.topic = options.topic;
    this.leaseMs = number('leaseMs', 1_000, 3_600_000, 30_000);
    this.batchMessages = number('batchMessages', 1, 1_000, 100);
    this.failuresMax = number('failuresMax', 1, 1_000, 20);
    this.skips = wordOption('onPoison', options.onPoison, ['block', 'skip'], 'block') === 'skip';
    this.runtime = options.runtime ?? systemRuntime;
    this.owner = attemptIds(this.runtime)();
    this.now = sqlNowMs[this.database.dialect];
  }

  async drain(): Promise<number> {
    let sent = 0;
    for (;;) {
      const lanes = await this.lease();
      const counts = await Promise.all(lanes.map((lane) => this.sendLane(lane)));
      const count = counts.reduce((sum, one) => sum + one, 0);
      sent += count;
      if (count === 0 || this.stopped) return sent;
    }
  }

  start(everyMs?: number): void {
    this.everyMs = integerOption('everyMs', everyMs, { min: 20, max: 600_000, fallback: 500 });
    this.next();
  }

  wake(): void {
    this.again = true;
    if (this.round !== undefined || this.stopped) return;
    this.timer?.cancel();
    this.next();
  }

  async stop(): Promise<void> {
    this.stopped = true;
    this.timer?.cancel();
    await this.round;
  }

  private next(): void {
    if (this.stopped || this.round !== undefined) return;
    this.again = false;
    const round = this.drain().then(
      () => undefined,
      (error: unknown) => emit('message', { type: 'relay-failed', error }),
    );
    this.round = round.then(() => {
      this.round = undefined;
      if (this.stopped) return;
      if (this.again) return this.next();
      const delayMs = this.everyMs * (0.75 + this.runtime.random() / 2);
      this.timer = this.runtime.timer(delayMs, false, () => this.next());
    });
  }

  /** Takes lanes with unsent messages that nobody else holds. */
  private async lease(): Promise<readonly Lane[]> {
    const blocked = this.skips ? '' : `AND failures < ${this.failuresMax}`;
    const waiting = `last_sequence > sent_sequence AND lease_until_ms <= ${this.now} ${blocked}
      ${this.topic === undefined ? '' : 'AND topic = $1'}`;
    const skipLocked = this.database.dialect === 'sqlite' ? '' : 'FOR UPDATE SKIP LOCKED';
    return await this.database.transaction(async (sql) => {
      const { rows } = await sql.query(
        `SELECT topic, lane, sent_sequence, failures FROM turngate_outbox_lane WHERE ${waiting}
         ORDER BY lease_until_ms LIMIT ${lanesPerRound} ${skipLocked}`,
        this.topic === undefined ? [] : [this.topic],
      );
      for (const row of rows) {
        await sql.query(
          `UPDATE turngate_outbox_lane SET owner = $3, lease_until_ms = ${this.now} + $4
           WHERE topic = $1 AND lane = $2`,
          [String(row['topic']), String(row['lane']), this.owner, this.leaseMs],
        );
      }
      return rows.map((row) => ({
        topic: String(row['topic']),
        lane: String(row['lane']),
        sent: Number(row['sent_sequence']),
        failures: Number(row['failures']),
      }));
    });
  }

  /** Sends a lane's messages in order until one fails, the lease runs short, or none is left. */
  private async sendLane(lane: Lane): Promise<number> {
    const endMs = this.runtime.monoMs() + this.leaseMs / 2;
    const { rows } = await this.database.query(
      `SELECT sequence, message_id, payload, headers, created_ms FROM turngate_outbox
       WHERE topic = $1 AND lane = $2 AND sequence > $3 ORDER BY sequence LIMIT ${this.batchMessages}`,
      [lane.topic, lane.lane, lane.sent],
    );
    let count = 0;
    let failed: unknown;
    for (const row of rows) {
      try {
        await this.publisher.publish(messageFrom(lane, row));
        count++;
      } catch (error) {
        failed = error;
        const { topic, sent } = lane;
        emit('message', { type: 'publish-failed', topic, sequence: sent + count + 1, error });
        break;
      }
      if (this.stopped || this.runtime.monoMs() > endMs) break;
    }
    await this.settle(lane, count, failed !== undefined);
    return count;
  }

  /** Marks what the broker has taken; guarded by the owner, so that a late relay marks nothing. */
  private async settle(lane: Lane, count: number, failed: boolean): Promise<void> {
    const failures = failed ? (count > 0 ? 1 : lane.failures + 1) : 0;
    const skip = this.skips && failures >= this.failuresMax;
    const pauseMs = failed && !skip ? backoffMs(this.runtime, failures, failurePause) : 0;
    const sent = lane.sent + count + (skip ? 1 : 0);
    await this.database.transaction(async (sql) => {
      const { affectedRows } = await sql.query(
        `UPDATE turngate_outbox_lane
         SET sent_sequence = $3, failures = $4, owner = '', lease_until_ms = ${this.now} + $5
         WHERE topic = $1 AND lane = $2 AND owner = $6`,
        [lane.topic, lane.lane, sent, skip ? 0 : failures, Math.ceil(pauseMs), this.owner],
      );
      if (affectedRows === 0 || !skip) return;
      await sql.query(
        `UPDATE turngate_outbox SET parked_ms = ${this.now}
         WHERE topic = $1 AND lane = $2 AND sequence = $3`,
        [lane.topic, lane.lane, sent],
      );
    });
    if (skip) emit('message', { type: 'parked', topic: lane.topic, sequence: sent });
  }
}

function messageFrom({ topic, lane }: Lane, row: Record<string, unknown>): Message {
  const keyed = lane.startsWith('key:');
  return {
    id: String(row['message_id']),
    topic,
    key: keyed ? lane.slice('key:'.length) : undefined,
    sequence: keyed ? Number(row['sequence']) : undefined,
    payload: String(row['payload']),
    headers: JSON.parse(String(row['headers'])) as Record<string, string>,
    createdMs: Number(row['created_ms']),
  };
}

/**
 * Deletes messages that were sent before a time, in one batch; parked ones stay.
 *
 * @returns how many went
 */
export async function purgeOutbox(
  database: SqlDatabase,
  olderThanMs: number,
  limit = 1_000,
): Promise<number> {
  const { rows } = await database.query(
    `SELECT o.topic AS topic, o.lane AS lane, o.sequence AS sequence FROM turngate_outbox o
     JOIN turngate_outbox_lane l ON l.topic = o.topic AND l.lane = o.lane
     WHERE o.sequence <= l.sent_sequence AND o.parked_ms IS NULL
       AND o.created_ms < ${sqlNowMs[database.dialect]} - $1 LIMIT ${limit}`,
    [olderThanMs],
  );
  for (const row of rows) {
    await database.query(
      'DELETE FROM turngate_outbox WHERE topic = $1 AND lane = $2 AND sequence = $3',
      [String(row['topic']), String(row['lane']), Number(row['sequence'])],
    );
  }
  return rows.length;
}
