/**
 * WRONG: takes the unit off a counter before it looks whether the customer has bought already, as a
 * counter in front of the database is often written. A second press burns a unit.
 */
import { ShopError } from '../../../trade/shop-error.ts';
import { oncePerCustomer } from './once-per-customer.ts';
import type { SaleContender } from './terms.ts';

export const counterFirst: SaleContender = {
  title: 'counter first',
  idea: 'Takes a unit off a guarded counter, then orders once per customer; a repeat keeps its unit.',
  breaks: ['unsold'],
  why: 'the second press of a customer takes a unit and makes no order of it',
  open({ store }) {
    const order = oncePerCustomer(store, async () => {});
    return {
      async purchase(wish) {
        const { affectedRows } = await store.database.query(
          `UPDATE lab_sale SET units_left = units_left - 1
           WHERE activity_id = $1 AND units_left >= 1`,
          [wish.activityId],
        );
        if (affectedRows === 0) throw new ShopError('SOLD_OUT', 'sold out');
        return await order(wish);
      },
    };
  },
};
