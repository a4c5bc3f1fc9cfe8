/** A broker that delivers everything three times at once, and loses a consumer on the way. */
import { defineScenario, type ScenarioStage } from '../../scenario.ts';
import { countOf } from '../count.ts';
import { killAt } from '../reach.ts';
import { ShopFloor } from '../shop-floor.ts';
import { pointsWalls } from '../walls.ts';
import { markAfter } from './mark-after.ts';
import { markBefore } from './mark-before.ts';
import { noInbox } from './no-inbox.ts';
import { right } from './right.ts';
import { beforeCommit, type MessageVerbs, messageLaws } from './terms.ts';

const deliveries = 3;
const victims = 4;

export const duplicateMessages = defineScenario({
  title: 'duplicate messages',
  story:
    'Every "order paid" is delivered three times at once, to three nodes; the first four have been ' +
    'at a node that was killed before its commit.',
  laws: messageLaws,
  tables: [...pointsWalls, 'CREATE TABLE lab_mark (message_id text PRIMARY KEY)'],
  contenders: {
    turngate: right,
    'no-inbox': noInbox,
    'mark-after': markAfter,
    'mark-before': markBefore,
  },
  async storm(stage: ScenarioStage<MessageVerbs>) {
    const orders = await new ShopFloor(stage.store).openPaidOrders(stage.quick ? 10 : 30);
    const { rows } = await stage.store.database.query(
      'SELECT message_id, payload FROM turngate_outbox',
      [],
    );
    const messages = rows.map((row) => ({
      messageId: String(row['message_id']),
      payload: String(row['payload']),
    }));
    const dying = messages.slice(0, victims);
    await killAt(
      stage,
      0,
      dying.map((input) => ({ verb: 'deliver', input, hangAt: beforeCommit })),
    );
    await Promise.all(
      messages.flatMap((input) =>
        Array.from({ length: deliveries }, (_, node) =>
          stage.askUntilSettled({ verb: 'deliver', input, node }),
        ),
      ),
    );
    return { messages: orders.length };
  },
  async audit(sql, { messages }) {
    const applied = await countOf(sql, 'SELECT count(*) AS n FROM shop_points');
    const known = await countOf(sql, 'SELECT count(DISTINCT order_no) AS n FROM shop_points');
    return { twice: applied - known, lost: messages - known };
  },
});
