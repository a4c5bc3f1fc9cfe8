/** RIGHT: the shop's own callback. */
import { callbackOperation } from '../../../trade/callback.ts';
import type { CallbackContender } from './terms.ts';

export const right: CallbackContender = {
  title: 'turngate',
  idea: 'The shop’s callback: one operation per event, and the attempt moves once.',
  breaks: [],
  why: 'repeats meet in the record of the event, other events in the guarded move of the attempt',
  open({ store }) {
    const callback = callbackOperation(store);
    return { callback: async (told) => (await callback(told)).value };
  },
};
