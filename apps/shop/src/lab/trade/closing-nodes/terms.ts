/** What can be done with orders whose time to pay is over, and what must hold after it. */
import type { PaymentCallback } from '../../../trade/callback.ts';
import type { Contender, Law } from '../../scenario.ts';

export interface ClosingVerbs {
  /** One round over the due orders, as every node makes it. */
  readonly close: null;
  readonly callback: PaymentCallback;
}

export const closingLaws = {
  restored: {
    one: 'unit given back twice',
    many: 'units given back twice',
    meaning: 'the sale has more units than it began with, counting those of its living orders',
  },
  paidAndClosed: {
    one: 'order paid and closed',
    many: 'orders paid and closed',
    meaning: 'the payment is booked, the order is closed, and nothing was sent back',
  },
  left: {
    one: 'order left open',
    many: 'orders left open',
    meaning: 'due, not paid, and not closed in the end, or its unit never came back',
  },
} as const satisfies Record<string, Law>;

export type ClosingContender = Contender<ClosingVerbs, keyof typeof closingLaws>;
