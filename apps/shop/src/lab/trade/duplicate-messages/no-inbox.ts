/** WRONG: a message is its effect. The broker delivers at least once. */
import { givePoints } from '../../../messages/points.ts';
import { receivedOf } from './received.ts';
import { beforeCommit, type MessageContender } from './terms.ts';

export const noInbox: MessageContender = {
  title: 'no inbox',
  idea: 'Gives the points of every delivery, in a transaction.',
  breaks: ['twice'],
  why: 'it was delivered three times',
  open: ({ store: { database } }) => ({
    async deliver(delivered, trial) {
      await database.transaction(async (sql, tx) => {
        await givePoints(receivedOf(delivered), sql, tx);
        await trial.at(beforeCommit);
      });
    },
  }),
};
