/** RIGHT: the shop's own cancellation and callback. */
import { callbackOperation } from '../../../trade/callback.ts';
import { orderOperations } from '../../../trade/orders.ts';
import type { CancelContender } from './terms.ts';

export const right: CancelContender = {
  title: 'turngate',
  idea: 'Both are guarded moves of one flow; money that finds its order cancelled is sent back.',
  breaks: [],
  why: 'the two meet in the row of the order, one of them moves it, and the other sees that',
  open({ store }) {
    const { cancel } = orderOperations(store);
    const callback = callbackOperation(store);
    return {
      cancel: async (order) => (await cancel(order)).value,
      callback: async (told) => (await callback(told)).value,
    };
  },
};
