/** RIGHT: the shop's own refunds. */
import { refundOperation } from '../../../trade/refunds.ts';
import type { RefundContender } from './terms.ts';

export const right: RefundContender = {
  title: 'turngate',
  idea: 'One operation per refund number; the quota is a guarded update in its transaction.',
  breaks: [],
  why: 'repeats meet in the record, other refunds of the order in the row of its payment',
  open({ store }) {
    const refund = refundOperation(store);
    return { refund: async (wish) => (await refund(wish)).value };
  },
};
