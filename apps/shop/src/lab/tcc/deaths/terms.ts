/** A checkout whose coordinator dies, and what must hold after it. */
import type { CheckoutRequest } from '../../../trade/checkout.ts';
import type { Contender, Law } from '../../scenario.ts';

export interface CheckoutVerbs {
  readonly checkout: CheckoutRequest;
}

export const checkoutLaws = {
  twice: {
    one: 'checkout paid twice',
    many: 'checkouts paid twice',
    meaning: 'one checkout of one customer is paid more than once',
  },
  split: {
    one: 'checkout paid without its goods',
    many: 'checkouts paid without their goods',
    meaning: 'money and units of one checkout did not end the same way',
  },
  abandoned: {
    one: 'reservation nobody will end',
    many: 'reservations nobody will end',
    meaning: 'money or units are held, and no process knows of it any more',
  },
} as const satisfies Record<string, Law>;

export type CheckoutContender = Contender<CheckoutVerbs, keyof typeof checkoutLaws>;
