/**
 * Outbox: messages written in the business transaction. Each key has one row that counts its
 * messages; that row's lock makes their order the order of commits. Nothing is ever selected by "last
 * id seen".
 */
import type { SqlSession } from '../contract/sql-session.ts';
import { hash64 } from '../core/hash64.ts';
import { knownOptions, optionError } from '../core/option.ts';
import { sqlNowMs, sqlUpsert } from '../core/sql-text.ts';
import { attemptIds, type Runtime, systemRuntime } from '../runtime/runtime.ts';
import { namePattern } from './message.ts';

/** A message to be sent after the commit. */
export interface OutgoingMessage {
  readonly topic: string;
  /**
   * Messages with one key are sent in the order of their transactions' commits, and wait for each
   * other: use the id of what they are about. Left out: no order.
   */
  readonly key?: string;
  /** Anything JSON can say. */
  readonly payload: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** A stable id of your own; default: a fresh one, kept over all repeats. */
  readonly id?: string;
}

/** Writes messages. */
export interface Outbox {
  /**
   * Writes a message in your transaction: it is sent if and only if that commits.
   *
   * @returns its id
   * @throws OPTION_INVALID before any I/O
   */
  add(sql: SqlSession, message: OutgoingMessage): Promise<string>;
}

// Messages without a key are spread over so many lanes, so that writers do not queue for one row.
const lanes = 64n;
const payloadCharsMax = 1_000_000;

/** Creates an outbox. */
export function createOutbox(options: { readonly runtime?: Runtime } = {}): Outbox {
  const nextId = attemptIds(options.runtime ?? systemRuntime);
  return {
    async add(sql, message) {
      const id = message.id ?? nextId();
      const payload = checkMessage(message, id);
      const { topic, key } = message;
      const lane =
        key === undefined ? `lane:${BigInt.asUintN(64, hash64(id)) % lanes}` : `key:${key}`;
      const sequence = await nextSequence(sql, topic, lane);
      await sql.query(
        `INSERT INTO turngate_outbox (topic, lane, sequence, message_id, payload, headers, created_ms)
         VALUES ($1, $2, $3, $4, $5, $6, ${sqlNowMs[sql.dialect]})`,
        [topic, lane, sequence, id, payload, JSON.stringify(message.headers ?? {})],
      );
      return id;
    },
  };
}

/** Counts the lane up; the row stays locked until the commit, so nobody can overtake. */
async function nextSequence(sql: SqlSession, topic: string, lane: string): Promise<number> {
  const count = (): Promise<{ readonly affectedRows: number }> =>
    sql.query(
      `UPDATE turngate_outbox_lane SET last_sequence = last_sequence + 1
       WHERE topic = $1 AND lane = $2`,
      [topic, lane],
    );
  if ((await count()).affectedRows === 0) {
    await sql.query(
      `INSERT INTO turngate_outbox_lane
         (topic, lane, last_sequence, sent_sequence, owner, lease_until_ms, failures)
       VALUES ($1, $2, 0, 0, '', 0, 0) ${sqlUpsert(sql.dialect, ['topic', 'lane'], [])}`,
      [topic, lane],
    );
    await count();
  }
  const { rows } = await sql.query(
    'SELECT last_sequence FROM turngate_outbox_lane WHERE topic = $1 AND lane = $2',
    [topic, lane],
  );
  return Number(rows[0]?.['last_sequence']);
}

function checkMessage(message: OutgoingMessage, id: string): string {
  knownOptions('message', message, ['topic', 'key', 'payload', 'headers', 'id']);
  if (!namePattern.test(message.topic)) {
    throw optionError('topic', '1 to 128 of letters, digits and . _ : / -', message.topic);
  }
  for (const [option, value] of [
    ['key', message.key ?? 'none'],
    ['id', id],
  ] as const) {
    if (typeof value !== 'string' || !/^[\x21-\x7e]{1,200}$/.test(value)) {
      throw optionError(option, '1 to 200 visible ASCII characters', value);
    }
  }
  const payload = JSON.stringify(message.payload);
  if (payload === undefined || payload.length > payloadCharsMax) {
    throw optionError(
      'payload',
      `a JSON value of at most ${payloadCharsMax} characters`,
      typeof message.payload,
    );
  }
  return payload;
}
