/**
 * Inbox: a message is consumed in one transaction with its effect. The row is inserted first, so a
 * repeat finds it and is acknowledged at once; a crash before the commit leaves nothing.
 */
import { type Claim, ClaimTable } from '../claim/claim-table.ts';
import type { SqlDatabase, SqlSession } from '../contract/sql-session.ts';
import { functionOption, integerOption, knownOptions, optionError } from '../core/option.ts';
import { sqlNowMs, sqlUpsert } from '../core/sql-text.ts';
import { emit } from '../runtime/events.ts';
import { attemptIds, type Runtime, systemRuntime } from '../runtime/runtime.ts';

const consumed = new ClaimTable({
  table: 'turngate_inbox',
  key: ['consumer', 'source', 'message_id'],
  fresh: { consumed_ms: '{now}' },
});

/** What identifies a delivery. */
export interface Delivery {
  /** The message's own id: the same on every redelivery. Not the broker's delivery tag. */
  readonly messageId: string;
  /** Where ids are unique: a topic, a queue, a partner. */
  readonly source: string;
  /**
   * When the message was made, epoch milliseconds, if it says so. Older than the memory is refused:
   * whether it was consumed is no longer known.
   */
  readonly createdMs?: number;
  /** False when the broker is sure that this is the first delivery: saves one small write. */
  readonly redelivered?: boolean;
}

/**
 * What became of a delivery. All are to be acknowledged: `applied` now, `duplicate` before; `parked` and
 * `too-old` are on record for an operator.
 */
export type Consumption<T> =
  | { readonly kind: 'applied'; readonly value: T }
  | { readonly kind: 'duplicate' | 'parked' | 'too-old' };

/** Options of an inbox. */
export interface InboxOptions<Tx> {
  readonly database: SqlDatabase<Tx>;
  /** Names the consumer for ever; two consumers of one message are two names. */
  readonly consumer: string;
  /**
   * A message whose effect was begun so often without an end is parked: it kills its consumers.
   *
   * @unit starts, integer, 1 to 1_000
   * @default 10
   */
  readonly startsMax?: number;
  /**
   * How long consumed messages are remembered. Longer than the longest redelivery or redrive.
   *
   * @unit milliseconds, integer, 60_000 to 3_650 days
   * @default 2_592_000_000 (30 days)
   */
  readonly memoryMs?: number;
  readonly runtime?: Runtime;
}

/** Consumes messages once. */
export interface Inbox<Tx> {
  /**
   * Runs `effect` in one transaction with the mark. Throwing rolls both back; the broker delivers again.
   *
   * Not promised: effects outside the transaction.
   */
  consume<T>(
    delivery: Delivery,
    effect: (sql: SqlSession, tx: Tx) => Promise<T>,
  ): Promise<Consumption<T>>;
  /** The same in your transaction. `false`: consumed before, do nothing and commit. */
  claim(sql: SqlSession, delivery: Delivery): Promise<boolean>;
  /** Forgets what is older than the memory; returns how many went. */
  purge(limit?: number): Promise<number>;
}

const known = ['database', 'consumer', 'startsMax', 'memoryMs', 'runtime'];

/** @throws OPTION_INVALID before any I/O */
export function createInbox<Tx>(options: InboxOptions<Tx>): Inbox<Tx> {
  knownOptions('inbox options', options, known);
  if (!/^[\x21-\x7e]{1,128}$/.test(options.consumer)) {
    throw optionError('consumer', '1 to 128 visible ASCII characters', options.consumer);
  }
  return new SqlInbox(options);
}

class SqlInbox<Tx> implements Inbox<Tx> {
  private readonly database: SqlDatabase<Tx>;
  private readonly consumer: string;
  private readonly startsMax: number;
  private readonly memoryMs: number;
  private readonly runtime: Runtime;
  private readonly nextToken: () => string;
  private readonly now: string;

  constructor(options: InboxOptions<Tx>) {
    this.database = options.database;
    this.consumer = options.consumer;
    this.startsMax = integerOption('startsMax', options.startsMax, {
      min: 1,
      max: 1_000,
      fallback: 10,
    });
    this.memoryMs = integerOption('memoryMs', options.memoryMs, {
      min: 60_000,
      max: 3_650 * 86_400_000,
      fallback: 30 * 86_400_000,
    });
    this.runtime = options.runtime ?? systemRuntime;
    this.nextToken = attemptIds(this.runtime);
    this.now = sqlNowMs[this.database.dialect];
  }

  async consume<T>(
    delivery: Delivery,
    effect: (sql: SqlSession, tx: Tx) => Promise<T>,
  ): Promise<Consumption<T>> {
    functionOption('effect', effect);
    checkDelivery(delivery);
    const { createdMs } = delivery;
    // The wall clock is good enough for days; the rows themselves go by the database's.
    if (createdMs !== undefined && this.runtime.wallMs() - createdMs > this.memoryMs) {
      await this.park(delivery, 'older than the memory');
      return this.told(delivery, { kind: 'too-old' });
    }
    if (delivery.redelivered !== false && !(await this.countStart(delivery))) {
      return this.told(delivery, { kind: 'parked' });
    }
    try {
      const claim = this.claimOf(delivery);
      const value = await this.database.transaction(
        async (sql, tx, answers) => {
          if (!(await consumed.claimed(sql, claim, answers)).ours) throw new Duplicate();
          return await effect(sql, tx);
        },
        { first: (server) => consumed.steps(server, claim) },
      );
      return this.told(delivery, { kind: 'applied', value });
    } catch (error) {
      if (error instanceof Duplicate) return this.told(delivery, { kind: 'duplicate' });
      emit('message', { type: 'consume-failed', consumer: this.consumer, error });
      throw error;
    }
  }

  async claim(sql: SqlSession, delivery: Delivery): Promise<boolean> {
    return (await consumed.claim(sql, this.claimOf(delivery))).ours;
  }

  private claimOf(delivery: Delivery): Claim {
    const { source, messageId } = checkDelivery(delivery);
    return { key: [this.consumer, source, messageId], values: [], token: this.nextToken() };
  }

  async purge(limit = 1_000): Promise<number> {
    integerOption('limit', limit, { min: 1, max: 100_000, fallback: 1_000 });
    // Twice the memory: what is younger than the memory must still be known when it comes again.
    const old = (column: string): string => `${column} < ${this.now} - $2`;
    const consumed = await this.purgeTable('turngate_inbox', old('consumed_ms'), limit);
    const unparked = `${old('first_ms')} AND parked_reason IS NULL`;
    return consumed + (await this.purgeTable('turngate_inbox_start', unparked, limit));
  }

  private async purgeTable(table: string, where: string, limit: number): Promise<number> {
    const { rows } = await this.database.query(
      `SELECT source, message_id FROM ${table} WHERE consumer = $1 AND ${where} LIMIT ${limit}`,
      [this.consumer, 2 * this.memoryMs],
    );
    for (const row of rows) {
      await this.database.query(
        `DELETE FROM ${table} WHERE consumer = $1 AND source = $2 AND message_id = $3`,
        [this.consumer, String(row['source']), String(row['message_id'])],
      );
    }
    return rows.length;
  }

  /** Counts before the effect, in a transaction of its own: a consumer that dies has been counted. */
  private async countStart(delivery: Delivery): Promise<boolean> {
    const { source, messageId } = delivery;
    const keys = [this.consumer, source, messageId];
    const where = 'WHERE consumer = $1 AND source = $2 AND message_id = $3';
    await this.database.query(
      `INSERT INTO turngate_inbox_start (consumer, source, message_id, starts, first_ms)
       VALUES ($1, $2, $3, 0, ${this.now})
       ${sqlUpsert(this.database.dialect, ['consumer', 'source', 'message_id'], [])}`,
      keys,
    );
    await this.database.query(`UPDATE turngate_inbox_start SET starts = starts + 1 ${where}`, keys);
    const text = `SELECT starts, parked_reason FROM turngate_inbox_start ${where}`;
    const [row] = (await this.database.query(text, keys)).rows;
    if (row?.['parked_reason'] != null) return false;
    if (Number(row?.['starts']) <= this.startsMax) return true;
    const done = await this.database.query(`SELECT token FROM turngate_inbox ${where}`, keys);
    if (done.rows.length > 0) return true; // Consumed before: a duplicate, however often it comes.
    await this.park(delivery, `begun ${this.startsMax} times without an end`);
    return false;
  }

  private async park({ source, messageId }: Delivery, reason: string): Promise<void> {
    await this.database.query(
      `INSERT INTO turngate_inbox_start (consumer, source, message_id, starts, first_ms, parked_reason)
       VALUES ($1, $2, $3, 0, ${this.now}, $4)
       ${sqlUpsert(this.database.dialect, ['consumer', 'source', 'message_id'], ['parked_reason'])}`,
      [this.consumer, source, messageId, reason],
    );
  }

  private told<T>({ source }: Delivery, result: Consumption<T>): Consumption<T> {
    emit('message', { type: result.kind, consumer: this.consumer, source });
    return result;
  }
}

class Duplicate extends Error {}

function checkDelivery(delivery: Delivery): Delivery {
  for (const option of ['messageId', 'source'] as const) {
    const value = delivery[option];
    if (typeof value !== 'string' || !/^[\x21-\x7e]{1,200}$/.test(value)) {
      throw optionError(option, '1 to 200 visible ASCII characters', value);
    }
  }
  return delivery;
}
