/** RIGHT: the shop's own depot, behind the barrier. */
import { depotParticipant } from '../../../depot/depot.ts';
import { mortal, type WordContender } from './terms.ts';

export const right: WordContender = {
  title: 'turngate',
  idea: 'The depot behind its barrier: one row per branch decides, in the transaction of the effect.',
  breaks: [],
  why: 'a repeat finds the row, and a cancel that comes first leaves one for the late try',
  open: ({ store: { database } }) => ({
    async word({ gid, op, ...hold }, trial) {
      const participant = depotParticipant(mortal(database, trial));
      const { signal } = new AbortController();
      await participant[op](hold, { gid, branch: 'stock', signal });
      await trial.at('answered');
    },
  }),
};
