/** WRONG: looks for the mark, gives the points, and marks when all is done. */
import { givePoints } from '../../../messages/points.ts';
import { receivedOf } from './received.ts';
import { beforeCommit, type MessageContender } from './terms.ts';

export const markAfter: MessageContender = {
  title: 'marked afterwards',
  idea: 'Looks whether the message is marked, gives the points, then marks it.',
  breaks: ['twice'],
  why: 'all three deliveries look before one of them has marked',
  open: ({ store: { database } }) => ({
    async deliver(delivered, trial) {
      const text = 'SELECT 1 AS known FROM lab_mark WHERE message_id = $1';
      const { rows } = await database.query(text, [delivered.messageId]);
      if (rows.length > 0) return;
      await database.transaction(async (sql, tx) => {
        await givePoints(receivedOf(delivered), sql, tx);
        await trial.at(beforeCommit);
      });
      await database.query('INSERT INTO lab_mark VALUES ($1) ON CONFLICT DO NOTHING', [
        delivered.messageId,
      ]);
    },
  }),
};
