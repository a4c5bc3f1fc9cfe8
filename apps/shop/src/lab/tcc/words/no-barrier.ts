/** WRONG: every call is applied. */
import { endReservation, reserveUnits } from '../bare-depot.ts';
import { mortal, type WordContender } from './terms.ts';

export const noBarrier: WordContender = {
  title: 'no barrier',
  idea: 'Applies what it is told, in one transaction per call.',
  breaks: ['twice'],
  why: 'each repeat is applied again, and a cancel gives back what was never taken',
  open: ({ store: { database } }) => ({
    async word({ op, ...hold }, trial) {
      await mortal(database, trial).transaction((sql) =>
        op === 'try' ? reserveUnits(sql, hold) : endReservation(sql, hold, op),
      );
      await trial.at('answered');
    },
  }),
};
