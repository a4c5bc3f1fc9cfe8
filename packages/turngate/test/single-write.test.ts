/** Single writes on PostgreSQL through each client: once, replayed, refused, settled. */
import { type ProxyFilter, startProxy } from '@turngate/test-servers';
import postgresJs from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGate } from '../src/index.ts';
import { memory } from '../src/stores/memory/index.ts';
import { type PostgresClient, postgres } from '../src/stores/postgres/index.ts';
import { turn, until } from './support/clock.ts';
import { rejection } from './support/errors.ts';
import { createDatabase, createPool, serverUrl, type TestDatabase } from './support/postgres.ts';

interface Pay {
  readonly orderNo: string;
  readonly amount: number;
}

const kinds = [
  {
    name: 'pg',
    open(url: string) {
      const pool = createPool(url, { max: 8 });
      return { client: pool as PostgresClient, end: () => pool.end() };
    },
  },
  {
    name: 'postgres.js',
    open(url: string) {
      const sql = postgresJs(url, { max: 8, onnotice: () => undefined });
      // With a limit: it waits for ever for a connection that was cut.
      return { client: sql as unknown as PostgresClient, end: () => sql.end({ timeout: 1 }) };
    },
  },
];

describe.skipIf(serverUrl === '').each(kinds)('a single write through $name', ({ open }) => {
  let target: TestDatabase;
  let client: PostgresClient;
  let end: () => Promise<unknown>;
  let serial = 0;

  beforeAll(async () => {
    target = await createDatabase();
    await target.admin.query(
      'CREATE TABLE paid (order_no text PRIMARY KEY, status text NOT NULL, amount bigint, times integer NOT NULL DEFAULT 0)',
    );
    ({ client, end } = open(target.url));
  });
  afterAll(async () => {
    await end();
    await target.drop();
  });

  const gateOf = () => createGate({ records: postgres(client), memoryCharsMax: 0 });
  const declare = (gate = gateOf()) =>
    gate.singleWrite({
      name: 'order.pay',
      key: ({ orderNo }: Pay) => orderNo,
      statement: `UPDATE paid SET status = 'PAID', amount = $2::bigint, times = times + 1
        WHERE order_no = $1 AND status = 'NEW' RETURNING order_no AS "orderNo", status`,
      values: ({ orderNo, amount }) => [orderNo, amount],
    });

  async function order(): Promise<string> {
    const orderNo = `o-${++serial}`;
    await target.admin.query("INSERT INTO paid (order_no, status) VALUES ($1, 'NEW')", [orderNo]);
    return orderNo;
  }
  const times = async (orderNo: string): Promise<number> =>
    (await target.admin.query('SELECT times FROM paid WHERE order_no = $1', [orderNo])).rows[0]
      .times;

  it('writes once over two processes and 40 callers, and gives all the same row', async () => {
    const orderNo = await order();
    const pays = [declare(), declare()] as const;
    const results = await Promise.all(
      Array.from({ length: 40 }, (_, i) => (i % 2 ? pays[0] : pays[1])({ orderNo, amount: 5 })),
    );
    expect(results.filter((outcome) => outcome.replayed === false)).toHaveLength(1);
    for (const outcome of results) expect(outcome.value).toEqual({ orderNo, status: 'PAID' });
    expect(await times(orderNo)).toBe(1);
  });

  it('tells a key with another payload, and leaves the row alone', async () => {
    const orderNo = await order();
    const pay = declare();
    await pay({ orderNo, amount: 5 });
    await expect(pay({ orderNo, amount: 6 })).rejects.toMatchObject({
      code: 'IDEMPOTENCY_KEY_REUSED',
    });
    expect(await times(orderNo)).toBe(1);
  });

  it('records nothing when the guard finds nothing, so that the key stays free', async () => {
    const pay = declare();
    const orderNo = `later-${++serial}`;
    await expect(pay({ orderNo, amount: 5 })).rejects.toMatchObject({ code: 'NOTHING_WRITTEN' });
    await target.admin.query("INSERT INTO paid (order_no, status) VALUES ($1, 'NEW')", [orderNo]);
    expect((await pay({ orderNo, amount: 5 })).replayed).toBe(false);
  });

  it('is waited for when its gate closes', async () => {
    const orderNo = await order();
    const gate = gateOf();
    const pay = declare(gate);
    const ends: string[] = [];
    const blocker = await target.admin.connect();
    await blocker.query('BEGIN');
    await blocker.query('SELECT 1 FROM paid WHERE order_no = $1 FOR UPDATE', [orderNo]);
    const paying = pay({ orderNo, amount: 5 }).then(() => ends.push('paid'));
    await until('the write waits for the row', async () => {
      const { rows } = await target.admin.query(
        "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
      );
      return rows.length === 1;
    });
    const closing = gate.close().then(() => ends.push('closed'));
    await turn();
    await blocker.query('COMMIT');
    blocker.release();
    await Promise.all([paying, closing]);
    expect(ends).toEqual(['paid', 'closed']);
  });

  it('binds odd texts exactly and never reads them as SQL', async () => {
    const gate = gateOf();
    const write = gate.singleWrite({
      name: 'odd.insert',
      key: (text: string) => `${++serial}-${text.length}`,
      statement:
        "INSERT INTO paid (order_no, status) VALUES ($1, 'NEW') RETURNING order_no AS text",
      values: (text) => [text],
    });
    const odd = [`a"b`, 'a\\b', '{x,y}', 'NULL', "'; DROP TABLE paid; --", '🙂 é', ' '];
    for (const text of odd) expect((await write(text)).value).toEqual({ text });
    const rename = gate.singleWrite({
      name: 'odd.update',
      key: (text: string) => `${++serial}-${text.length}`,
      statement: 'UPDATE paid SET status = $1 WHERE order_no = $2 RETURNING status AS text',
      values: (text) => [text, odd[0] as string],
    });
    for (const text of odd) expect((await rename(text)).value).toEqual({ text });
  });

  it.each([
    ['a counter', 'UPDATE paid SET times = times + 1 WHERE order_no = $1 RETURNING times'],
    [
      'an OR',
      "UPDATE paid SET times = times + 1 WHERE order_no = $1 OR order_no = 'or' RETURNING times",
    ],
    [
      'a query in it',
      `UPDATE paid SET times = (SELECT p.times + 1 FROM paid p WHERE p.order_no = $1)
       WHERE order_no IN (SELECT order_no FROM paid WHERE order_no = $1) -- the order
       RETURNING times`,
    ],
    [
      'a join',
      `UPDATE paid SET times = paid.times + 1 FROM paid AS other
       WHERE paid.order_no = $1 AND other.order_no = $1 RETURNING paid.times`,
    ],
    [
      'a comment',
      'UPDATE paid SET times = times + 1 /* (where) */ WHERE order_no = $1 RETURNING times',
    ],
    [
      'an insert',
      `INSERT INTO paid (order_no, status, times) VALUES ($1 || ' copy', 'NEW', 1)
       RETURNING times`,
    ],
  ])('writes once whatever the write looks like: %s', async (name, statement) => {
    const operation = `shape.${name.toLowerCase().replaceAll(' ', '-')}`;
    const gates = [gateOf(), gateOf()] as const;
    const declareIn = (gate: (typeof gates)[0]) =>
      gate.singleWrite({
        name: operation,
        key: (no: string) => no,
        statement,
        values: (no) => [no],
      });
    const [one, two] = [declareIn(gates[0]), declareIn(gates[1])];
    const orderNo = await order();
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, i) => (i % 2 ? one : two)(orderNo)),
    );
    expect(outcomes.filter((outcome) => outcome.replayed === false)).toHaveLength(1);
    for (const outcome of outcomes) expect(outcome.value).toEqual({ times: 1 });
    expect(new Set(outcomes.map(({ firstProcessedAt }) => firstProcessedAt.getTime())).size).toBe(
      1,
    );
    await gates[0].close();
    expect((await two(orderNo)).value).toEqual({ times: 1 });
    const written = name === 'an insert' ? `${orderNo} copy` : orderNo;
    expect(await times(written)).toBe(1);
  });

  it('does the same once repeats are so common that it looks first', async () => {
    const pay = declare();
    const [known, fresh] = [await order(), await order()];
    await pay({ orderNo: known, amount: 5 });
    for (let i = 0; i < 40; i++) {
      expect((await pay({ orderNo: known, amount: 5 })).replayed).toBe(true);
    }
    const missing = pay({ orderNo: 'missing', amount: 5 });
    await expect(missing).rejects.toMatchObject({ code: 'NOTHING_WRITTEN' });
    expect((await pay({ orderNo: fresh, amount: 5 })).replayed).toBe(false);
    expect([await times(known), await times(fresh)]).toEqual([1, 1]);
  });

  it('deletes once, and answers what was deleted', async () => {
    const orderNo = await order();
    const drop = gateOf().singleWrite({
      name: 'order.drop',
      key: (no: string) => no,
      statement: 'DELETE FROM paid WHERE order_no = $1 RETURNING order_no',
      values: (no) => [no],
    });
    for (const replayed of [false, true]) {
      expect(await drop(orderNo)).toMatchObject({ replayed, value: { order_no: orderNo } });
    }
  });

  it('leaves nothing when the statement fails', async () => {
    const orderNo = await order();
    const gate = gateOf();
    const bad = gate.singleWrite({
      name: 'order.bad',
      key: (no: string) => no,
      statement: `UPDATE paid SET amount = $2::bigint WHERE order_no = $1 RETURNING 1 AS one`,
      values: (no) => [no, 'not a number'],
    });
    await expect(bad(orderNo)).rejects.toMatchObject({ code: '22P02' });
    const { rows } = await target.admin.query(
      "SELECT count(*) AS n FROM turngate_record WHERE operation = 'order.bad'",
    );
    expect(rows[0].n).toBe('0');
  });

  it('runs again after the record has expired', async () => {
    const gate = gateOf();
    const count = gate.singleWrite({
      name: 'order.count',
      key: (no: string) => no,
      retentionMs: 1_000,
      statement: 'UPDATE paid SET times = times + 1 WHERE order_no = $1 RETURNING times',
      values: (no) => [no],
    });
    const orderNo = await order();
    expect((await count(orderNo)).value).toEqual({ times: 1 });
    await target.admin.query(
      "UPDATE turngate_record SET expires_at = now() - interval '1 second' WHERE operation = 'order.count'",
    );
    expect((await count(orderNo)).value).toEqual({ times: 2 });
  });

  it('settles a lost connection by asking again: written once, answered as ours', async () => {
    const orderNo = await order();
    let lost = 0;
    const filter = (connection: { cut(): void }): ProxyFilter => ({
      toServer: () => 'pass',
      toClient(data) {
        // The server has committed; the client never hears of it.
        if (lost > 0 || !data.includes('INSERT 0 1\u0000')) return 'pass';
        lost++;
        connection.cut();
        return 'drop';
      },
    });
    const proxy = await startProxy(target.url, { filter });
    const far = open(proxy.url);
    try {
      const gate = createGate({ records: postgres(far.client), memoryCharsMax: 0 });
      const outcome = await declare(gate)({ orderNo, amount: 5 });
      expect([lost, outcome.replayed, await times(orderNo)]).toEqual([1, false, 1]);
    } finally {
      await far.end();
      await proxy.stop();
    }
  });

  it('is refused where the store cannot do it, and for what writes nothing', () => {
    const declaration = {
      name: 'x',
      key: () => 'k',
      statement: 'SELECT 1',
      values: () => [],
    };
    expect(() => gateOf().singleWrite(declaration)).toThrow(/INSERT, UPDATE or DELETE/);
    const returning = { ...declaration, statement: 'UPDATE paid SET times = 1 RETURNING 1 AS one' };
    expect(() => createGate({ records: memory() }).singleWrite(returning)).toThrow(/single writes/);
  });
});

describe('a declared single write', () => {
  // Nothing listens there: whatever is refused is refused before any I/O.
  const nowhere = () => postgres(createPool('postgres://127.0.0.1:1/none'));
  const statement = 'UPDATE paid SET amount = $1::bigint';
  const declared = (values: () => readonly never[]) => ({
    name: 'pay',
    key: (orderNo: string) => orderNo,
    statement,
    values,
  });

  it.each([
    ['undefined', undefined],
    ['a date', new Date(0)],
    ['an object', { amount: 5 }],
    ['a function', () => 5],
  ])('refuses %s for a value, which would be bound as a word nobody meant', async (_, value) => {
    const gate = createGate({ records: nowhere() });
    const pay = gate.singleWrite(declared(() => [1, value] as never[]));
    const error = await rejection(pay('a'), 'OPTION_INVALID');
    expect(error.message).toMatch(/^values\[1\] must be text, a number/);
  });

  it('has a name that nothing else in its gate has', () => {
    const write = declared(() => []);
    const run = { name: 'pay', key: write.key, run: () => 1 };
    const twice = expect.objectContaining({ code: 'OPTION_INVALID' });
    const gate = createGate({ records: nowhere() });
    gate.singleWrite(write);
    expect(() => gate.singleWrite(write)).toThrow(twice);
    expect(() => gate.operation(run)).toThrow(twice);
  });
});
