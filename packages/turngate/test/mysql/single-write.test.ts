/** Single writes on MariaDB, with and without found-rows and several statements: once, replayed, refused. */
import { createPool, type Pool } from 'mysql2/promise';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { createGate } from '../../src/index.ts';
import { migrate, mysql } from '../../src/stores/mysql/index.ts';
import { until } from '../support/clock.ts';
import { createMariadbDatabase, type MariadbDatabase } from '../support/mariadb.ts';

interface Pay {
  readonly orderNo: string;
  readonly amount: number;
}

const kinds = [
  { name: 'defaults', options: {} },
  { name: 'several statements', options: { multipleStatements: true } },
  { name: 'changed rows', options: { flags: ['-FOUND_ROWS'] } },
  { name: 'both', options: { multipleStatements: true, flags: ['-FOUND_ROWS'] } },
];

describe.skipIf(inject('mariadbUrl') === '').each(kinds)('a single write, $name', ({ options }) => {
  let target: MariadbDatabase;
  let pool: Pool;
  let serial = 0;

  beforeAll(async () => {
    target = await createMariadbDatabase();
    pool = createPool({ uri: target.url, connectionLimit: 8, ...options });
    await migrate(pool);
    await target.admin.query(
      `CREATE TABLE paid (order_no VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY,
        status VARCHAR(16) NOT NULL, amount BIGINT, times INT NOT NULL DEFAULT 0)`,
    );
  });
  afterAll(async () => {
    await pool.end();
    await target.drop();
  });

  const gateOf = () => createGate({ records: mysql(pool), memoryCharsMax: 0 });
  const declare = (gate = gateOf()) =>
    gate.singleWrite({
      name: 'order.pay',
      key: ({ orderNo }: Pay) => orderNo,
      statement: `UPDATE paid SET status = 'PAID', amount = $2, times = times + 1
        WHERE order_no = $1 AND status = 'NEW'`,
      values: ({ orderNo, amount }) => [orderNo, amount],
      answer: (_, { orderNo }) => ({ orderNo, status: 'PAID' }),
    });

  async function order(orderNo = `o-${++serial}`): Promise<string> {
    await target.admin.query("INSERT INTO paid (order_no, status) VALUES (?, 'NEW')", [orderNo]);
    return orderNo;
  }
  async function row(orderNo: string): Promise<{ times: number; amount: number }> {
    const [rows] = await target.admin.query('SELECT times, amount FROM paid WHERE order_no = ?', [
      orderNo,
    ]);
    return (rows as { times: number; amount: number }[])[0] as { times: number; amount: number };
  }

  it('writes once over two processes and 40 callers, and gives all the same answer', async () => {
    const orderNo = await order();
    const pays = [declare(), declare()] as const;
    const results = await Promise.all(
      Array.from({ length: 40 }, (_, i) => (i % 2 ? pays[0] : pays[1])({ orderNo, amount: 5 })),
    );
    expect(results.filter((outcome) => outcome.replayed === false)).toHaveLength(1);
    for (const outcome of results) expect(outcome.value).toEqual({ orderNo, status: 'PAID' });
    expect(await row(orderNo)).toEqual({ times: 1, amount: 5 });
  });

  it('tells the first and every repeat the same time, by the server’s clock', async () => {
    const orderNo = await order();
    const first = await declare()({ orderNo, amount: 5 });
    const repeat = await declare()({ orderNo, amount: 5 });
    expect([first.replayed, repeat.replayed]).toEqual([false, true]);
    expect(repeat.firstProcessedAt).toEqual(first.firstProcessedAt);
    const [clock] = await target.admin.query('SELECT UNIX_TIMESTAMP(NOW(6)) * 1000 AS ms');
    const agoMs = (clock as { ms: string }[]).map(({ ms }) => Number(ms) - +first.firstProcessedAt);
    expect(agoMs[0]).toBeGreaterThanOrEqual(0);
    expect(agoMs[0]).toBeLessThan(60_000);
  });

  it('refuses another payload, and frees the key when there was nothing to write', async () => {
    const orderNo = `later-${++serial}`;
    const pay = declare();
    await expect(pay({ orderNo, amount: 5 })).rejects.toMatchObject({ code: 'NOTHING_WRITTEN' });
    await order(orderNo);
    expect((await pay({ orderNo, amount: 5 })).replayed).toBe(false);
    await expect(pay({ orderNo, amount: 6 })).rejects.toMatchObject({
      code: 'IDEMPOTENCY_KEY_REUSED',
    });
  });

  it('binds odd texts exactly and never reads them as SQL', async () => {
    const write = gateOf().singleWrite({
      name: 'odd.insert',
      key: (text: string) => `${++serial}-${text.length}`,
      statement: "INSERT INTO paid (order_no, status) VALUES ($1, 'NEW')",
      values: (text) => [text],
    });
    const odd = [`a"b`, 'a\\b', "'; DROP TABLE paid; --", '🙂 é', '$1', '?'];
    for (const text of odd) {
      expect((await write(text)).value).toEqual({ affectedRows: 1 });
      expect(await row(text)).toMatchObject({ times: 0 });
    }
  });

  it.each([
    ['latin1_swedish_ci', 'VARCHAR(64) CHARACTER SET latin1 COLLATE latin1_swedish_ci'],
    ['utf8mb4_unicode_ci', 'VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci'],
    ['bytes', 'VARBINARY(64)'],
    ['numbers', 'BIGINT'],
  ])('finds its row by the index and touches no other, by a key of %s', async (name, type) => {
    const table = `indexed_${name}`;
    await target.admin.query(`CREATE TABLE ${table} (id ${type} PRIMARY KEY, times INT NOT NULL)`);
    await target.admin.query(
      `INSERT INTO ${table} WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n
         WHERE i < 500) SELECT i, 0 FROM n`,
    );
    const other = await pool.getConnection();
    try {
      await other.query('BEGIN');
      await other.query(`SELECT times FROM ${table} WHERE id = '7' FOR UPDATE`);
      const count = gateOf().singleWrite({
        name: 'count',
        key: (id: string) => id,
        statement: `UPDATE ${table} SET times = times + 1 WHERE id = $1`,
        values: (id) => [id],
      });
      let isDone = false;
      const counted = count('300').then(() => {
        isDone = true;
      });
      await until('it is written beside the locked row', () => isDone);
      await counted;
    } finally {
      await other.query('ROLLBACK');
      other.release();
      await target.admin.query(`DROP TABLE ${table}`);
    }
  });

  it('leaves the character set of its connection as it was', async () => {
    const one = createPool({ uri: target.url, connectionLimit: 1, ...options });
    const names = async () => {
      const [rows] = await one.query(
        `SELECT @@character_set_client, @@character_set_results, @@collation_connection`,
      );
      return rows;
    };
    try {
      await one.query('SET NAMES latin1 COLLATE latin1_german2_ci');
      const before = await names();
      await declare(createGate({ records: mysql(one), memoryCharsMax: 0 }))({
        orderNo: await order(),
        amount: 5,
      });
      expect(await names()).toEqual(before);
    } finally {
      await one.end();
    }
  });

  it('leaves nothing when the statement fails or touches two rows', async () => {
    const gate = gateOf();
    const [a] = [await order(`two-${++serial}`), await order(`two-${++serial}`)];
    const declared = (name: string, statement: string) =>
      gate.singleWrite({ name, key: (no: string) => no, statement, values: (no) => [no] });
    const both = declared(
      'both',
      "UPDATE paid SET times = times + 1 WHERE order_no LIKE 'two-%' AND $1 <> ''",
    );
    await expect(both(a)).rejects.toMatchObject({ code: 'NOTHING_WRITTEN' });
    const bad = declared('bad', 'INSERT INTO paid (order_no, status) VALUES ($1, NULL)');
    await expect(bad('x')).rejects.toMatchObject({ errno: 1048 });
    const twice = declared('twice', "INSERT INTO paid (order_no, status) VALUES ($1, 'NEW')");
    await expect(twice(a)).rejects.toMatchObject({ errno: 1062 });
    expect(await row(a)).toMatchObject({ times: 0 });
    const [rows] = await target.admin.query(
      "SELECT count(*) AS n FROM turngate_record WHERE operation IN ('both', 'bad', 'twice')",
    );
    expect((rows as { n: number }[])[0]?.n).toBe(0);
  });

  it('runs again after the record has expired', async () => {
    const count = gateOf().singleWrite({
      name: 'order.count',
      key: (no: string) => no,
      statement: 'UPDATE paid SET times = times + 1 WHERE order_no = $1',
      values: (no) => [no],
    });
    const orderNo = await order();
    await count(orderNo);
    await target.admin.query(
      "UPDATE turngate_record SET expires_ms = 1 WHERE operation = 'order.count'",
    );
    expect((await count(orderNo)).replayed).toBe(false);
    expect(await row(orderNo)).toMatchObject({ times: 2 });
  });

  it('settles a lost connection by asking again: written once, answered as ours', async () => {
    const pay = declare();
    const orderNos = await Promise.all(Array.from({ length: 12 }, () => order()));
    const killing = (async () => {
      for (let i = 0; i < 20; i++) {
        const [found] = await target.admin.query(
          `SELECT id FROM information_schema.processlist
           WHERE db = DATABASE() AND id <> CONNECTION_ID() AND command <> 'Sleep'`,
        );
        for (const { id } of found as { id: number }[]) {
          await target.admin.query(`KILL ${id}`).catch(() => undefined);
        }
      }
    })();
    const outcomes = await Promise.all(orderNos.map((orderNo) => pay({ orderNo, amount: 5 })));
    await killing;
    expect(outcomes.map(({ replayed }) => replayed)).toEqual(orderNos.map(() => false));
    for (const orderNo of orderNos) expect(await row(orderNo)).toMatchObject({ times: 1 });
  });
});
