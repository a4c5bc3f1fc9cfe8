/** A flash sale: one unit for each customer, fewer units than customers, and everybody presses twice. */
import { activityOperations } from '../../../trade/activities.ts';
import { defineScenario, type ScenarioStage } from '../../scenario.ts';
import { countOf } from '../count.ts';
import { ShopFloor } from '../shop-floor.ts';
import { countThenInsert } from './count-then-insert.ts';
import { counterFirst } from './counter-first.ts';
import { right } from './right.ts';
import { type SaleVerbs, saleLaws } from './terms.ts';
import { writeBack } from './write-back.ts';

const activityId = 'sale';
/** They are served before the others come, and press again. */
const early = 4;
const full = { units: 40, buyers: 100 };
const quick = { units: 12, buyers: 30 };

export const activitySale = defineScenario({
  title: 'flash sale, one each',
  story:
    '100 customers for 40 units, one each; four are served first and press again, the others press ' +
    'twice at once, on different nodes.',
  laws: saleLaws,
  tables: ['CREATE TABLE lab_sale (activity_id text PRIMARY KEY, units_left integer NOT NULL)'],
  contenders: {
    turngate: right,
    'count-then-insert': countThenInsert,
    'write-back': writeBack,
    'counter-first': counterFirst,
  },
  async storm(stage: ScenarioStage<SaleVerbs>) {
    const { units, buyers } = stage.quick ? quick : full;
    const skuId = await new ShopFloor(stage.store).openSku();
    await activityOperations(stage.store).create({ activityId, skuId, units, perUser: 1 });
    // The counter of those who keep one of their own.
    await stage.store.database.query('INSERT INTO lab_sale VALUES ($1, $2)', [activityId, units]);
    const press = (buyers: readonly number[], again: number) =>
      buyers.map((buyer) => {
        const input = { activityId, userId: `user-${buyer}` };
        return stage.askUntilSettled({ verb: 'purchase', input, node: buyer + again });
      });
    const numbers = Array.from({ length: buyers }, (_, buyer) => buyer);
    for (const again of [0, 1]) await Promise.all(press(numbers.slice(0, early), again));
    const others = numbers.slice(early);
    await Promise.all([...press(others, 0), ...press(others, 1)]);
    return { units, buyers };
  },
  async audit(sql, { units, buyers }) {
    const ofSale = 'FROM shop_order WHERE activity_id IS NOT NULL';
    const sold = await countOf(sql, `SELECT count(*) AS n ${ofSale}`);
    const served = await countOf(sql, `SELECT count(DISTINCT user_id) AS n ${ofSale}`);
    return {
      oversold: Math.max(0, sold - units),
      overLimit: sold - served,
      unsold: served < buyers ? Math.max(0, units - sold) : 0,
    };
  },
});
