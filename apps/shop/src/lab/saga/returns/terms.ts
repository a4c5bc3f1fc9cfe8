/** A return whose coordinator dies, and what must hold after it. */
import type { ReturnOrder } from '../../../trade/returns.ts';
import type { Contender, Law } from '../../scenario.ts';

export interface ReturnVerbs {
  readonly giveBack: ReturnOrder;
}

/** Where a call may be left hanging, in the order of the steps. */
export type ReturnPoint = 'booked' | 'asked' | 'refunded' | 'restocked' | 'coupon-back' | 'told';

export const returnLaws = {
  twice: {
    one: 'return restocked twice',
    many: 'returns restocked twice',
    meaning: 'the goods of one return are on the shelf more than once',
  },
  half: {
    one: 'return left half done',
    many: 'returns left half done',
    meaning: 'the money is back; the goods, the coupon or the word to the customer is not',
  },
  held: {
    one: 'refund booked for nothing',
    many: 'refunds booked for nothing',
    meaning: 'the channel has refused, and the order’s quota is still taken',
  },
} as const satisfies Record<string, Law>;

export type ReturnContender = Contender<ReturnVerbs, keyof typeof returnLaws>;
