/** What can be done when money is given back, and what must hold after it. */
import type { RefundOrder } from '../../../trade/refunds.ts';
import type { Contender, Law } from '../../scenario.ts';

export interface RefundVerbs {
  readonly refund: RefundOrder;
}

export const refundLaws = {
  over: {
    one: 'order refunded beyond its payment',
    many: 'orders refunded beyond their payments',
    meaning: 'the refunds of an order add up to more than was captured',
  },
  twice: {
    one: 'refund made twice',
    many: 'refunds made twice',
    meaning: 'a refund number is in the books more than once',
  },
  lost: {
    one: 'refund lost',
    many: 'refunds lost',
    meaning: 'the caller was told "refunded", and it is not in the books',
  },
} as const satisfies Record<string, Law>;

export type RefundContender = Contender<RefundVerbs, keyof typeof refundLaws>;
