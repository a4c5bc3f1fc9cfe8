/** What can be done in a callback storm, and what must hold after it. */
import type { PaymentCallback } from '../../../trade/callback.ts';
import type { Contender, Law } from '../../scenario.ts';

export interface CallbackVerbs {
  readonly callback: PaymentCallback;
}

export const callbackLaws = {
  twice: {
    one: 'payment booked twice',
    many: 'payments booked twice',
    meaning: 'a payment at the channel is booked again though it was booked before',
  },
  forgotten: {
    one: 'payment forgotten',
    many: 'payments forgotten',
    meaning: 'the channel has the money, and the shop does not say so in the end or sends it back',
  },
} as const satisfies Record<string, Law>;

export type CallbackContender = Contender<CallbackVerbs, keyof typeof callbackLaws>;
