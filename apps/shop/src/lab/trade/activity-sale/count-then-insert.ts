/** WRONG: counts the orders of the sale and of the customer, then inserts one more. */
import { ShopError } from '../../../trade/shop-error.ts';
import { orderUnit } from './once-per-customer.ts';
import type { SaleContender } from './terms.ts';

export const countThenInsert: SaleContender = {
  title: 'count, then insert',
  idea: 'Counts the orders there are, for the sale and for the customer; while there is room, inserts.',
  breaks: ['oversold', 'overLimit'],
  why: 'all count before one of them has inserted',
  open: ({ store: { database } }) => ({
    async purchase(wish) {
      const { rows } = await database.query(
        `SELECT a.units AS units, count(o.order_no) AS sold,
           count(o.order_no) FILTER (WHERE o.user_id = $2) AS mine
         FROM shop_activity a LEFT JOIN shop_order o ON o.activity_id = a.activity_id
         WHERE a.activity_id = $1 GROUP BY a.units`,
        [wish.activityId, wish.userId],
      );
      const { units, sold, mine } = rows[0] as Record<string, unknown>;
      if (Number(mine) > 0) return 'bought before';
      if (Number(sold) >= Number(units)) throw new ShopError('SOLD_OUT', 'sold out');
      return await database.transaction((sql) => orderUnit(wish, sql));
    },
  }),
};
