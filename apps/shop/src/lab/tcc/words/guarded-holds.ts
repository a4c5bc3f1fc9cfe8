/** WRONG: repeats are kept out by the state of the hold, but a cancel that finds none leaves no trace. */
import { endReservation, reserveUnits } from '../bare-depot.ts';
import { mortal, type WordContender } from './terms.ts';

export const guardedHolds: WordContender = {
  title: 'guarded holds',
  idea: 'One hold per transaction, moved on by guarded updates; a cancel without a hold does nothing.',
  breaks: ['hanging'],
  why: 'the try that was overtaken by its cancel finds nothing that speaks against it',
  open: ({ store: { database } }) => ({
    async word({ gid, op, ...hold }, trial) {
      await mortal(database, trial).transaction(async (sql) => {
        const { affectedRows } =
          op === 'try'
            ? await sql.query(
                `INSERT INTO shop_depot_hold (gid, checkout_no, sku_id, units, state)
                 VALUES ($1, $2, $3, $4, 'HELD') ON CONFLICT (gid) DO NOTHING`,
                [gid, hold.checkoutNo, hold.skuId, hold.units],
              )
            : await sql.query(
                `UPDATE shop_depot_hold SET state = $2 WHERE gid = $1 AND state = 'HELD'`,
                [gid, op === 'confirm' ? 'CONFIRMED' : 'CANCELLED'],
              );
        if (affectedRows === 0) return;
        if (op === 'try') await reserveUnits(sql, hold);
        else await endReservation(sql, hold, op);
      });
      await trial.at('answered');
    },
  }),
};
