/** Outbox, relay, inbox on a real database, with a broker that fails, repeats and reorders. */
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import type { SqlDatabase } from '../../src/contract/sql-session.ts';
import {
  createInbox,
  createOutbox,
  createRelay,
  type Message,
  purgeOutbox,
} from '../../src/message/index.ts';
import { postgresDatabase } from '../../src/stores/postgres/index.ts';
import { until } from '../support/clock.ts';
import { createDatabase, createPool, type TestDatabase } from '../support/postgres.ts';

const writers = 5;
/** How many messages four relays send: `TURNGATE_OUTBOX_ROWS`, a multiple of the writers. */
const rowCount = Number(process.env['TURNGATE_OUTBOX_ROWS'] ?? 200);

describe.skipIf(inject('postgresUrl') === '')('messages', () => {
  let target: TestDatabase;
  let pool: pg.Pool;
  let database: SqlDatabase;
  let topic: string;
  let serial = 0;
  const outbox = createOutbox();

  beforeAll(async () => {
    target = await createDatabase();
    pool = createPool(target.url, { max: 20 });
    database = postgresDatabase(pool) as SqlDatabase;
  });
  beforeEach(() => {
    topic = `topic-${++serial}`;
  });
  afterAll(async () => {
    await pool.end();
    await target.drop();
  });

  const add = (payload: unknown, key?: string): Promise<string> =>
    database.transaction((sql) =>
      outbox.add(sql, { topic, payload, ...(key === undefined ? {} : { key }) }),
    );

  /** A broker that keeps what it was given; `fail` decides whether it answers. */
  function broker(fail: (message: Message) => boolean = () => false) {
    const got: Message[] = [];
    return {
      got,
      async publish(message: Message): Promise<void> {
        if (fail(message)) throw new Error('the broker is away');
        got.push(message);
      },
    };
  }

  const relayTo = (publisher: { publish(message: Message): Promise<void> }, parts: object = {}) =>
    createRelay({ database, publisher, topic, ...parts });

  const freeLanes = (): Promise<unknown> =>
    database.query('UPDATE turngate_outbox_lane SET lease_until_ms = 0 WHERE topic = $1', [topic]);

  it('sends what was committed and nothing that was rolled back', async () => {
    await add({ n: 1 }, 'a');
    await database
      .transaction(async (sql) => {
        await outbox.add(sql, { topic, payload: { n: 2 }, key: 'a' });
        throw new Error('no');
      })
      .catch(() => undefined);
    await add({ n: 3 }, 'a');
    const sink = broker();
    expect(await relayTo(sink).drain()).toBe(2);
    expect(sink.got.map(({ payload, sequence }) => [payload, sequence])).toEqual([
      ['{"n":1}', 1],
      ['{"n":3}', 2],
    ]);
    expect(await relayTo(sink).drain()).toBe(0);
  });

  it('keeps the order of each key over four relays and many writers, each message once', {
    timeout: 300_000,
  }, async () => {
    const keys = ['a', 'b', 'c', 'd', 'e'];
    const written = new Map<string, number>();
    const writer = async (): Promise<void> => {
      for (let i = 0; i < rowCount / writers; i++) {
        const key = keys[i % keys.length] as string;
        await database.transaction(async (sql) => {
          await outbox.add(sql, { topic, key, payload: i });
        });
        written.set(key, (written.get(key) ?? 0) + 1);
      }
    };
    const sink = broker();
    const relays = Array.from({ length: 4 }, () => relayTo(sink, { batchMessages: 3 }));
    for (const relay of relays) relay.start(20);
    await Promise.all(Array.from({ length: writers }, writer));
    await until('all are sent', () => sink.got.length >= rowCount, 280_000);
    await Promise.all(relays.map((relay) => relay.stop()));
    expect(new Set(sink.got.map(({ id }) => id)).size).toBe(rowCount);
    expect(sink.got).toHaveLength(rowCount);
    for (const key of keys) {
      const sequences = sink.got.filter((one) => one.key === key).map((one) => one.sequence);
      expect(sequences).toEqual(
        Array.from({ length: written.get(key) as number }, (_, i) => i + 1),
      );
    }
  });

  it('skips no message whose transaction began early and committed late', async () => {
    const sink = broker();
    const relay = relayTo(sink);
    let commit!: () => void;
    const held = new Promise<void>((resolve) => {
      commit = resolve;
    });
    let written!: () => void;
    const isWritten = new Promise<void>((resolve) => {
      written = resolve;
    });
    const slow = database.transaction(async (sql) => {
      await outbox.add(sql, { topic, payload: 'slow', key: 'x' });
      written();
      await held;
    });
    await isWritten;
    await add('fast', 'y');
    await relay.drain();
    commit();
    await slow;
    await relay.drain();
    expect(sink.got.map(({ payload }) => payload)).toEqual(['"fast"', '"slow"']);
  });

  it('holds a key behind its failing head, lets others pass, and repeats under the same id', async () => {
    const id = await add('first', 'bad');
    await add('second', 'bad');
    await add('other', 'good');
    let broken = true;
    const sink = broker(({ key }) => broken && key === 'bad');
    const relay = relayTo(sink);
    await relay.drain();
    expect(sink.got.map(({ payload }) => payload)).toEqual(['"other"']);
    broken = false;
    await freeLanes();
    await relay.drain();
    expect(sink.got.slice(1).map((one) => [one.payload, one.id === id])).toEqual([
      ['"first"', true],
      ['"second"', false],
    ]);
  });

  it('sends again what a crash left unmarked, with the same id', async () => {
    await add('m', 'k');
    const crashed = broker();
    const dying = relayTo({
      async publish(message) {
        await crashed.publish(message);
        // The process dies before the mark: its lease is all that is left of it.
        await database.query("UPDATE turngate_outbox_lane SET owner = 'next' WHERE topic = $1", [
          topic,
        ]);
      },
    });
    await dying.drain();
    await freeLanes();
    const sink = broker();
    await relayTo(sink).drain();
    expect(sink.got.map(({ id }) => id)).toEqual(crashed.got.map(({ id }) => id));
  });

  it('blocks a poisoned lane by default, and parks its head where told to skip', async () => {
    await add('poison', 'k');
    await add('after', 'k');
    const sink = broker(({ payload }) => payload === '"poison"');
    const blocking = relayTo(sink, { failuresMax: 2 });
    for (let i = 0; i < 4; i++) {
      await freeLanes();
      await blocking.drain();
    }
    expect(sink.got).toEqual([]);
    const skipping = relayTo(sink, { failuresMax: 2, onPoison: 'skip' });
    for (let i = 0; i < 2; i++) {
      await freeLanes();
      await skipping.drain();
    }
    expect(sink.got.map(({ payload }) => payload)).toEqual(['"after"']);
    const parked = 'SELECT count(*) AS n FROM turngate_outbox WHERE topic = $1 AND parked_ms > 0';
    expect(Number((await database.query(parked, [topic])).rows[0]?.['n'])).toBe(1);
  });

  it('purges what was sent, never what waits or is parked', async () => {
    await add('sent', 'k');
    await relayTo(broker()).drain();
    await add('waits', 'k');
    await database.query('UPDATE turngate_outbox SET created_ms = 1 WHERE topic = $1', [topic]);
    await purgeOutbox(database, 1_000, 10_000);
    const left = await database.query('SELECT payload FROM turngate_outbox WHERE topic = $1', [
      topic,
    ]);
    expect(left.rows.map((row) => row['payload'])).toEqual(['"waits"']);
  });

  it('consumes a message once with its effect, whatever arrives together', async () => {
    const inbox = createInbox({ database, consumer: `points-${serial}` });
    const results = await Promise.all(
      Array.from({ length: 20 }, () =>
        inbox.consume({ source: topic, messageId: 'm1', redelivered: false }, async (sql) => {
          await sql.query('INSERT INTO effect (line) VALUES ($1)', [`inbox ${topic}`]);
        }),
      ),
    );
    expect(results.filter(({ kind }) => kind === 'applied')).toHaveLength(1);
    expect(results.filter(({ kind }) => kind === 'duplicate')).toHaveLength(19);
    expect(await target.lines(`inbox ${topic}`)).toHaveLength(1);
    const other = createInbox({ database, consumer: `other-${serial}` });
    expect((await other.consume({ source: topic, messageId: 'm1' }, async () => 7)).kind).toBe(
      'applied',
    );
  });

  it('leaves nothing behind when the effect fails, and parks what was begun too often', async () => {
    const inbox = createInbox({ database, consumer: `frail-${serial}`, startsMax: 3 });
    const delivery = { source: topic, messageId: 'm' };
    let runs = 0;
    for (let i = 0; i < 3; i++) {
      const failing = inbox.consume(delivery, async (sql) => {
        runs++;
        await sql.query('INSERT INTO effect (line) VALUES ($1)', [`frail ${topic}`]);
        throw new Error('no');
      });
      await expect(failing).rejects.toThrow('no');
    }
    expect((await inbox.consume(delivery, async () => void runs++)).kind).toBe('parked');
    expect((await inbox.consume(delivery, async () => void runs++)).kind).toBe('parked');
    expect(runs).toBe(3);
    expect(await target.lines(`frail ${topic}`)).toEqual([]);
  });

  it('never parks what it has consumed, however often it comes again', async () => {
    const inbox = createInbox({ database, consumer: `often-${serial}`, startsMax: 2 });
    const kinds: string[] = [];
    for (let i = 0; i < 6; i++) {
      kinds.push((await inbox.consume({ source: topic, messageId: 'm' }, async () => 1)).kind);
    }
    expect(kinds).toEqual(['applied', ...Array(5).fill('duplicate')]);
  });

  it('refuses by age what it may have forgotten, and forgets nothing younger', async () => {
    const memoryMs = 86_400_000;
    const inbox = createInbox({ database, consumer: `aged-${serial}`, memoryMs });
    const at = (ageMs: number, messageId: string) =>
      inbox.consume({ source: topic, messageId, createdMs: Date.now() - ageMs }, async () => 1);
    expect((await at(memoryMs / 2, 'young')).kind).toBe('applied');
    expect((await at(2 * memoryMs, 'old')).kind).toBe('too-old');
    await database.query(
      'UPDATE turngate_inbox SET consumed_ms = consumed_ms - $2 WHERE consumer = $1',
      [`aged-${serial}`, 1.5 * memoryMs],
    );
    expect(await inbox.purge()).toBe(0);
    expect((await at(memoryMs / 2, 'young')).kind).toBe('duplicate');
    await database.query(
      'UPDATE turngate_inbox SET consumed_ms = consumed_ms - $2 WHERE consumer = $1',
      [`aged-${serial}`, memoryMs],
    );
    expect(await inbox.purge()).toBe(1);
  });

  it.each([
    [{ topic: 'a b', payload: 1 }],
    [{ topic: 'a', payload: undefined }],
    [{ topic: 'a', payload: 1, key: 'ä' }],
    [{ topic: 'a', payload: 1, colour: 'red' }],
  ])('refuses %o before anything is sent', async (message) => {
    const sql = { dialect: 'postgres', query: () => Promise.reject(new Error('sent')) } as const;
    await expect(outbox.add(sql, message as never)).rejects.toMatchObject({
      code: 'OPTION_INVALID',
    });
  });
});
