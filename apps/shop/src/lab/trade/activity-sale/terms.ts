/** What can be done in a flash sale, and what must hold after it. */
import type { Purchase } from '../../../trade/activities.ts';
import type { Contender, Law } from '../../scenario.ts';

export interface SaleVerbs {
  readonly purchase: Purchase;
}

export const saleLaws = {
  oversold: {
    one: 'unit oversold',
    many: 'units oversold',
    meaning: 'orders of the sale beyond the units there were',
  },
  overLimit: {
    one: 'order over the limit',
    many: 'orders over the limit',
    meaning: 'one each was the rule, and a customer has more',
  },
  unsold: {
    one: 'unit unsold',
    many: 'units unsold',
    meaning: 'left over though customers were told "sold out"',
  },
} as const satisfies Record<string, Law>;

export type SaleContender = Contender<SaleVerbs, keyof typeof saleLaws>;
