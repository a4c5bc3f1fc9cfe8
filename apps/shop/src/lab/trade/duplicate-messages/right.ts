/** RIGHT: the shop's own consumer of paid orders, behind its inbox. */
import { createInbox } from 'turngate/message';
import { givePoints } from '../../../messages/points.ts';
import { receivedOf } from './received.ts';
import { beforeCommit, type MessageContender } from './terms.ts';

export const right: MessageContender = {
  title: 'turngate',
  idea: 'The shop’s points behind an inbox: the mark is inserted first, in the effect’s transaction.',
  breaks: [],
  why: 'repeats meet in the mark; a killed consumer leaves neither mark nor effect',
  open({ store: { database } }) {
    const inbox = createInbox({ database, consumer: 'shop.points' });
    return {
      async deliver(delivered, trial) {
        const message = receivedOf(delivered);
        const { messageId, source } = message;
        const { kind } = await inbox.consume({ messageId, source }, async (sql, tx) => {
          await givePoints(message, sql, tx);
          await trial.at(beforeCommit);
        });
        return kind;
      },
    };
  },
};
