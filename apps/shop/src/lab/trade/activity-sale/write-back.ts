/** WRONG: reads the units that are left and writes back one less. Others have read the same number. */
import { ShopError } from '../../../trade/shop-error.ts';
import { oncePerCustomer } from './once-per-customer.ts';
import type { SaleContender } from './terms.ts';

export const writeBack: SaleContender = {
  title: 'read, write back',
  idea: 'One order per customer without a fault; reads the units left and writes that number minus one.',
  breaks: ['oversold'],
  why: 'all read the same number, and each takes the same unit off it',
  open({ store }) {
    const purchase = oncePerCustomer(store, async (activityId, sql) => {
      const text = 'SELECT units_left FROM lab_sale WHERE activity_id = $1';
      const unitsLeft = Number((await sql.query(text, [activityId])).rows[0]?.['units_left']);
      if (unitsLeft < 1) throw new ShopError('SOLD_OUT', 'sold out');
      await sql.query('UPDATE lab_sale SET units_left = $2 WHERE activity_id = $1', [
        activityId,
        unitsLeft - 1,
      ]);
    });
    return { purchase };
  },
};
