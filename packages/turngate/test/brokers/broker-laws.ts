/** The laws every broker wrapper keeps, against a real broker and a real database. */
import { lookForProgram } from '@turngate/test-servers';
import type pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import type { SqlDatabase, SqlSession } from '../../src/contract/sql-session.ts';
import {
  createInbox,
  createOutbox,
  createRelay,
  type Inbox,
  type MessageEffect,
  type ReceivedMessage,
} from '../../src/message/index.ts';
import { postgresDatabase } from '../../src/stores/postgres/index.ts';
import { door, until } from '../support/clock.ts';
import { createDatabase, createPool, type TestDatabase } from '../support/postgres.ts';
import type { BrokerKind, Rig, TestConsumer } from './rig.ts';

const outbox = createOutbox();
let serial = 0;

/** Missing servers skip loudly, and fail where servers are required. */
export function missing(kind: BrokerKind): boolean {
  const program = lookForProgram(kind.program) === undefined ? kind.program : undefined;
  const lacking = program ?? (inject('postgresUrl') === '' ? 'PostgreSQL' : undefined);
  if (lacking === undefined) return false;
  if (process.env['CI'] || process.env['TURNGATE_REQUIRE_SERVERS']) {
    throw new Error(`no ${lacking} in this test run`);
  }
  console.warn(`SKIPPED "messages over ${kind.name}": no ${lacking} in this test run`);
  return true;
}

export function brokerLaws(kind: BrokerKind): void {
  describe.skipIf(missing(kind))(`messages over ${kind.name}`, () => {
    let target: TestDatabase;
    let pool: pg.Pool;
    let database: SqlDatabase;
    let topic: string;
    let rig: Rig;
    let running: TestConsumer[] = [];

    beforeAll(async () => {
      await kind.start();
      target = await createDatabase();
      pool = createPool(target.url, { max: 20 });
      database = postgresDatabase(pool) as SqlDatabase;
    });
    beforeEach(async () => {
      topic = `topic-${++serial}`;
      rig = await kind.open(topic);
    });
    afterEach(async () => {
      for (const consumer of running) await consumer.stop();
      running = [];
      await rig.close();
    });
    afterAll(async () => {
      await pool.end();
      await target.drop();
      await kind.stop();
    });

    const newInbox = (parts: object = {}): Inbox<unknown> =>
      createInbox({ database, consumer: topic, ...parts });

    const write = (sql: SqlSession, line: string): Promise<unknown> =>
      sql.query('INSERT INTO effect (line) VALUES ($1)', [`${topic}/${line}`]);

    const book: MessageEffect<unknown> = ({ payload }, sql) => write(sql, JSON.parse(payload).line);

    const lines = async (): Promise<string[]> =>
      (await target.lines(`${topic}/`)).map((line) => line.slice(topic.length + 1));

    async function consume(
      effect: MessageEffect<unknown>,
      inbox = newInbox(),
      ordered = false,
    ): Promise<TestConsumer> {
      const consumer = await rig.consume(inbox, effect, ordered);
      running.push(consumer);
      return consumer;
    }

    const send = (line: string, key?: string): Promise<string> =>
      database.transaction((sql) =>
        outbox.add(sql, { topic, payload: { line }, ...(key === undefined ? {} : { key }) }),
      );

    const relay = () => createRelay({ database, publisher: rig.publisher, topic });

    const settled = (limitMs = 60_000): Promise<void> =>
      until('nothing is open at the broker', async () => (await rig.openCount()) === 0, limitMs);

    it('delivers what was committed, as it was sent, and nothing that was rolled back', async () => {
      const got: ReceivedMessage[] = [];
      const id = await database.transaction((sql) =>
        outbox.add(sql, { topic, key: 'k', payload: { line: 'één' }, headers: { trace: 't1' } }),
      );
      await database
        .transaction(async (sql) => {
          await outbox.add(sql, { topic, payload: { line: 'no' } });
          throw new Error('no');
        })
        .catch(() => undefined);
      await relay().drain();
      await consume(async (message, sql) => {
        got.push(message);
        await write(sql, JSON.parse(message.payload).line);
      });
      await until('it arrived', () => got.length > 0);
      await settled();
      expect(await lines()).toEqual(['één']);
      expect(got).toMatchObject([
        { messageId: id, source: topic, key: 'k', sequence: 1, headers: { trace: 't1' } },
      ]);
      expect(Math.abs((got[0]?.createdMs ?? 0) - Date.now())).toBeLessThan(60_000);
    });

    it('applies once when the consumer dies between the commit and the ack', async () => {
      const committed = door();
      const inbox = newInbox();
      const dying: Inbox<unknown> = {
        ...inbox,
        claim: inbox.claim.bind(inbox),
        purge: inbox.purge.bind(inbox),
        async consume(delivery, effect) {
          await inbox.consume(delivery, effect);
          committed.open();
          return await new Promise<never>(() => undefined);
        },
      };
      await send('a');
      await relay().drain();
      const first = await rig.consume(dying, book);
      await committed.opened;
      await first.crash();
      const kinds: string[] = [];
      const watching: Inbox<unknown> = {
        claim: inbox.claim.bind(inbox),
        purge: inbox.purge.bind(inbox),
        async consume(delivery, effect) {
          const result = await inbox.consume(delivery, effect);
          kinds.push(result.kind);
          return result;
        },
      };
      await consume(book, watching);
      await until('it came again', () => kinds.length > 0, 30_000);
      await settled();
      expect(kinds).toEqual(['duplicate']);
      expect(await lines()).toEqual(['a']);
    });

    it('applies each message once with two consumers and everything sent twice', async () => {
      await Promise.all(Array.from({ length: 30 }, (_, i) => send(`n${100 + i}`)));
      await relay().drain();
      // A relay that died before it marked anything: all of it goes out again.
      await database.query('UPDATE turngate_outbox_lane SET sent_sequence = 0 WHERE topic = $1', [
        topic,
      ]);
      expect(await relay().drain()).toBe(30);
      await consume(book);
      await consume(book);
      await until('all arrived', async () => (await lines()).length >= 30, 30_000);
      await settled();
      expect(await lines()).toEqual(Array.from({ length: 30 }, (_, i) => `n${100 + i}`));
    });

    it('parks poison among the dead letters and goes on with the others', async () => {
      await send('poison');
      await send('good');
      await relay().drain();
      let begun = 0;
      await consume(
        async (message, sql) => {
          if (message.payload.includes('poison') && ++begun > 0) throw new Error('it kills');
          await book(message, sql, undefined);
        },
        newInbox({ startsMax: 3 }),
      );
      await until('it is dead', async () => (await rig.deadCount()) === 1, 60_000);
      await settled();
      expect(await lines()).toEqual(['good']);
      // The first start is not counted where the broker says that it is the first.
      expect(begun).toBeGreaterThanOrEqual(3);
      expect(begun).toBeLessThanOrEqual(4);
    });

    it('puts a message without an id among the dead letters, unseen by the effect', async () => {
      let seen = 0;
      await consume(async () => {
        seen++;
      });
      await rig.sendNameless();
      await until('it is dead', async () => (await rig.deadCount()) === 1, 30_000);
      await settled();
      expect(seen).toBe(0);
    });

    it('stop waits for what runs, and what was not begun is there for the next', async () => {
      const begun = door();
      const finish = door();
      for (let i = 0; i < 20; i++) await send(`s${10 + i}`);
      await relay().drain();
      const first = await rig.consume(newInbox(), async (message, sql) => {
        begun.open();
        await finish.opened;
        await book(message, sql, undefined);
      });
      await begun.opened;
      let stopped = false;
      const stopping = first.stop().then(() => {
        stopped = true;
      });
      await new Promise((resolve) => setImmediate(resolve));
      expect(stopped).toBe(false);
      finish.open();
      await stopping;
      expect((await lines()).length).toBeGreaterThan(0);
      await consume(book);
      await until('all arrived', async () => (await lines()).length >= 20, 30_000);
      await settled();
      expect((await lines()).length).toBe(20);
    });

    it.skipIf(kind.unordered !== undefined)(
      `keeps the order of a key over failures${kind.unordered ? ` (cannot: ${kind.unordered})` : ''}`,
      async () => {
        for (let i = 0; i < 8; i++) await send(`o${i}`, 'key');
        await relay().drain();
        const order: string[] = [];
        const failed = new Map<string, number>();
        await consume(
          async ({ payload }, sql) => {
            const { line } = JSON.parse(payload) as { line: string };
            const failures = failed.get(line) ?? 0;
            failed.set(line, failures + 1);
            if (failures < 2 && Number(line.slice(1)) % 3 === 0) throw new Error('not now');
            await write(sql, line);
            order.push(line);
          },
          newInbox(),
          true,
        );
        await until('all arrived', () => order.length >= 8, 30_000);
        expect(order).toEqual(Array.from({ length: 8 }, (_, i) => `o${i}`));
      },
    );

    it('loses nothing and repeats nothing over a kill of the broker', async () => {
      const working = relay();
      working.start(20);
      await consume(book);
      const total = 40;
      for (let i = 0; i < total; i++) {
        await send(`r${100 + i}`);
        if (i === 15) await until('some arrived', async () => (await lines()).length > 5);
        if (i === 20) await rig.restart();
      }
      await until('all arrived', async () => (await lines()).length >= total, 90_000);
      await working.stop();
      await settled();
      expect(await lines()).toEqual(Array.from({ length: total }, (_, i) => `r${100 + i}`));
    });
  });
}
