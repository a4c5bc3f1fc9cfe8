/** RIGHT: the shop's own flash sale. */
import { activityOperations } from '../../../trade/activities.ts';
import type { SaleContender } from './terms.ts';

export const right: SaleContender = {
  title: 'turngate',
  idea: 'One operation per customer and sale; the unit is held from segmented stock with the order.',
  breaks: [],
  why: 'presses of one customer meet in the record, customers in guarded rows of stock and quota',
  open({ store }) {
    const { purchase } = activityOperations(store);
    return { purchase: async (wish) => (await purchase(wish)).value };
  },
};
