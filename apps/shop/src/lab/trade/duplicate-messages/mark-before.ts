/** WRONG: marks in a transaction of its own, then gives the points. What dies in between is lost. */
import { givePoints } from '../../../messages/points.ts';
import { receivedOf } from './received.ts';
import { beforeCommit, type MessageContender } from './terms.ts';

export const markBefore: MessageContender = {
  title: 'marked before',
  idea: 'Inserts a unique mark and commits it; who inserted it gives the points.',
  breaks: ['lost'],
  why: 'killed between mark and points: the mark stays and turns every redelivery away',
  open: ({ store: { database } }) => ({
    async deliver(delivered, trial) {
      const { affectedRows } = await database.query(
        'INSERT INTO lab_mark VALUES ($1) ON CONFLICT DO NOTHING',
        [delivered.messageId],
      );
      if (affectedRows === 0) return;
      await database.transaction(async (sql, tx) => {
        await givePoints(receivedOf(delivered), sql, tx);
        await trial.at(beforeCommit);
      });
    },
  }),
};
