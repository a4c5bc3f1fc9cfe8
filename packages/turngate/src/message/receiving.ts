/**
 * What all broker consumers share: a delivery goes through the inbox and comes out as one of three
 * verdicts, which each broker's glue turns into its own acknowledgement.
 */
import type { SqlSession } from '../contract/sql-session.ts';
import { functionOption, optionError } from '../core/option.ts';
import { emit } from '../runtime/events.ts';
import type { Delivery, Inbox } from './inbox.ts';

/** A message as it came from a broker. */
export interface ReceivedMessage<Raw = unknown> {
  /** The same on every redelivery. */
  readonly messageId: string;
  /** Where ids are unique. */
  readonly source: string;
  readonly key: string | undefined;
  /** Position within the key, from 1; undefined without a key or from a foreign sender. */
  readonly sequence: number | undefined;
  readonly createdMs: number | undefined;
  /** The body as text, as it was sent: JSON when it comes from an outbox. */
  readonly payload: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The broker client's own object. Do not acknowledge it yourself. */
  readonly raw: Raw;
}

/**
 * What a message does, in one transaction with its mark in the inbox. Throwing rolls both back and
 * the message comes again.
 *
 * Not promised: effects outside the transaction.
 */
export type MessageEffect<Tx, Raw = unknown> = (
  message: ReceivedMessage<Raw>,
  sql: SqlSession,
  tx: Tx,
) => Promise<unknown>;

/** `done`: acknowledge. `dead`: to the dead letters. `again`: deliver again, later. */
export type Verdict =
  | { readonly kind: 'done'; readonly value: unknown }
  | { readonly kind: 'dead'; readonly reason: DeadReason }
  | { readonly kind: 'again'; readonly error: unknown };

/** Why a message went to the dead letters. */
export type DeadReason = 'no usable message id' | 'parked' | 'too-old';

/** A delivery before its identity was checked. */
export type RawDelivery<Raw> = Omit<ReceivedMessage<Raw>, 'messageId'> & {
  readonly messageId: string | undefined;
  readonly redelivered: boolean | undefined;
};

/** Runs one delivery to its verdict; never throws. */
export type Receive<Raw> = (delivery: RawDelivery<Raw>) => Promise<Verdict>;

const idPattern = /^[\x21-\x7e]{1,200}$/;

/** @throws OPTION_INVALID */
export function receiver<Tx, Raw>(inbox: Inbox<Tx>, effect: MessageEffect<Tx, Raw>): Receive<Raw> {
  functionOption('inbox.consume', (inbox as Partial<Inbox<Tx>> | undefined)?.consume);
  functionOption('effect', effect);
  return async ({ redelivered, messageId, ...message }) => {
    const { source } = message;
    if (messageId === undefined || !idPattern.test(messageId) || !idPattern.test(source)) {
      emit('message', { type: 'unidentified', source });
      return { kind: 'dead', reason: 'no usable message id' };
    }
    const delivery: Delivery = {
      messageId,
      source,
      ...(message.createdMs === undefined ? {} : { createdMs: message.createdMs }),
      ...(redelivered === undefined ? {} : { redelivered }),
    };
    try {
      const result = await inbox.consume(delivery, (sql, tx) =>
        effect({ ...message, messageId }, sql, tx),
      );
      if (result.kind === 'applied') return { kind: 'done', value: result.value };
      if (result.kind === 'duplicate') return { kind: 'done', value: undefined };
      return { kind: 'dead', reason: result.kind };
    } catch (error) {
      return { kind: 'again', error };
    }
  };
}

/** Checks the `source` option. */
export function sourceOption(source: string | undefined): string | undefined {
  if (source !== undefined && !idPattern.test(source)) {
    throw optionError('source', '1 to 200 visible ASCII characters', source);
  }
  return source;
}
