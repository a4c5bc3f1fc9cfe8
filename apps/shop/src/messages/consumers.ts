/** Who listens to a paid order. */
import type { SqlDatabase } from 'turngate/contract';
import { createInbox, type Inbox, type MessageEffect } from 'turngate/message';
import type { Tx } from '../trade/store.ts';
import { notifyPaid } from './notifications.ts';
import { givePoints } from './points.ts';

/** A consumer: its inbox knows what it has consumed. */
export interface Consumer {
  /** Also the name of its queue and, for ever, of its marks in the inbox. */
  readonly name: string;
  readonly inbox: Inbox<Tx>;
  readonly effect: MessageEffect<Tx>;
}

/** All of them. */
export function shopConsumers(database: SqlDatabase<Tx>): readonly Consumer[] {
  const consumer = (name: string, effect: MessageEffect<Tx>): Consumer => ({
    name,
    effect,
    inbox: createInbox({ database, consumer: name }),
  });
  return [consumer('shop.points', givePoints), consumer('shop.notifications', notifyPaid)];
}
