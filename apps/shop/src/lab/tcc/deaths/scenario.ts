/** The node that leads a checkout over two services is killed in the middle of it. */

import { dieOver } from '../../die-over.ts';
import { defineScenario, type ScenarioStage } from '../../scenario.ts';
import { askEverywhere, untilNobodyWorks } from '../../settling.ts';
import { countOf } from '../../trade/count.ts';
import { DepotFloor } from '../depot-floor.ts';
import { depotWalls } from '../walls.ts';
import { fromTheStart } from './from-the-start.ts';
import { right } from './right.ts';
import { statusFirst } from './status-first.ts';
import { type CheckoutVerbs, checkoutLaws } from './terms.ts';

type Stage = ScenarioStage<CheckoutVerbs>;
type Course = 'repeated' | 'reserved' | 'half-confirmed' | 'refused';
const courses: readonly Course[] = ['repeated', 'reserved', 'half-confirmed', 'refused'];

const supplied = 1_000;
const skuId = 'tea';

export const checkoutDeaths = defineScenario({
  title: 'death of a coordinator',
  story:
    'Checkouts over money and depot: asked three times at once, or killed when both are reserved, ' +
    'when one of the two is confirmed, when the depot has refused; then some customers ask again.',
  laws: checkoutLaws,
  tables: depotWalls,
  contenders: { turngate: right, 'from-the-start': fromTheStart, 'status-first': statusFirst },
  async storm(stage: Stage): Promise<void> {
    const floor = new DepotFloor(stage.store);
    await floor.openSku(skuId, supplied);
    const rounds = stage.quick ? 2 : 3;
    for (let round = 0; round < rounds; round++) {
      const plays = courses.map(async (course, i) => {
        const [userId, checkoutNo] = [`user-${round}-${i}`, `checkout-${round}-${i}`];
        const units = course === 'refused' ? supplied + 1 : 1;
        await floor.openAccount(userId, 5 * supplied * floor.priceMinor);
        const ask = {
          node: i,
          verb: 'checkout',
          input: { userId, checkoutNo, skuId, units },
        } as const;
        if (course === 'repeated') return await askEverywhere(stage, ask);
        await dieOver(stage, { ...ask, hangAt: course });
        // Who half paid asks again: "paid" must be true then. The others went away in every second
        // round, and somebody has to end it all the same.
        if (course === 'half-confirmed' || round % 2 === 0) {
          await stage.askUntilSettled({ ...ask, node: i + 1 });
        }
      });
      await Promise.all(plays);
    }
    await floor.openAccount('last', supplied * floor.priceMinor);
    const input = { userId: 'last', checkoutNo: 'checkout-last', skuId, units: 1 };
    await askEverywhere(stage, { verb: 'checkout', input }); // Trade goes on, on every node.
    await untilNobodyWorks(stage);
  },
  audit: async (sql) => ({
    twice: await countOf(
      sql,
      `SELECT count(*) AS n FROM (SELECT checkout_no FROM shop_checkout WHERE state = 'CONFIRMED'
       GROUP BY checkout_no HAVING count(*) > 1) AS c`,
    ),
    split: await countOf(
      sql,
      `SELECT count(*) AS n FROM shop_checkout c LEFT JOIN shop_depot_hold d ON d.gid = c.gid
       WHERE (c.state = 'CONFIRMED') <> (coalesce(d.state, '-') = 'CONFIRMED')`,
    ),
    abandoned: await countOf(
      sql,
      `SELECT (SELECT count(*) FROM shop_checkout WHERE state = 'HELD')
         + (SELECT count(*) FROM shop_depot_hold WHERE state = 'HELD') AS n`,
    ),
  }),
});
