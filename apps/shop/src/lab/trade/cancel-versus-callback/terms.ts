/** What can be done when a cancellation meets a payment, and what must hold after it. */
import type { PaymentCallback } from '../../../trade/callback.ts';
import type { OrderRef } from '../../../trade/order-flow.ts';
import type { Contender, Law } from '../../scenario.ts';

export interface CancelVerbs {
  readonly cancel: OrderRef;
  readonly callback: PaymentCallback;
}

export const cancelLaws = {
  paidAndCancelled: {
    one: 'order paid and cancelled',
    many: 'orders paid and cancelled',
    meaning: 'the cancellation was confirmed, the payment booked, and nothing sent back',
  },
  kept: {
    one: 'payment kept for nothing',
    many: 'payments kept for nothing',
    meaning: 'the channel has the money: it is neither booked for the order nor on its way back',
  },
} as const satisfies Record<string, Law>;

export type CancelContender = Contender<CancelVerbs, keyof typeof cancelLaws>;
