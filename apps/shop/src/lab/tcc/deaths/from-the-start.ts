/** WRONG: a coordinator that remembers nothing. Whoever asks again begins again. */
import { checkOutBare } from './bare-checkout.ts';
import type { CheckoutContender } from './terms.ts';

export const fromTheStart: CheckoutContender = {
  title: 'from the start',
  idea: 'Reserves money and units, confirms both, undoes in a catch; a repeat does all of it again.',
  breaks: ['twice', 'abandoned'],
  why: 'a catch does not run in a process that is killed, and the repeat knows of nothing',
  open: ({ store: { database } }) => ({
    checkout: (request, trial) => checkOutBare(database, request, trial),
  }),
};
