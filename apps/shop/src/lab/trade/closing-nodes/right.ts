/** RIGHT: the shop's own closing, which every node runs. */
import { ChannelClient } from '../../../channel/client.ts';
import { callbackOperation } from '../../../trade/callback.ts';
import { closeDueOrders } from '../../../trade/closing.ts';
import type { ClosingContender } from './terms.ts';

export const right: ClosingContender = {
  title: 'turngate',
  idea: 'Each step is a guarded move of the flow; only who moved the order gives its unit back.',
  breaks: [],
  why: 'nodes and callbacks meet in the row of the order, and each learns whether it was the one',
  open({ store }) {
    const callback = callbackOperation(store);
    // Nobody to ask: here only callbacks tell of payments.
    const channel = new ChannelClient({ secret: '', url: undefined });
    return {
      close: () => closeDueOrders({ store, channel, callback }),
      callback: async (told) => (await callback(told)).value,
    };
  },
};
