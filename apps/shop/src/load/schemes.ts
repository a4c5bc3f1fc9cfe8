/** Four ways to take a payment callback once; what the load compares. */
import type { Redis } from 'ioredis';
import type { Pool as MysqlPool } from 'mysql2/promise';
import type { Pool as PgPool } from 'pg';
import { createGate } from 'turngate';
import { mysql } from 'turngate/mysql';
import { postgres } from 'turngate/postgres';

/** What the caller is told. Both mean the order is paid. */
export type Code = 'PAID' | 'REPEATED';

/** Takes the callback of an order. */
export type Scheme = (orderNo: string) => Promise<Code>;

/** The schemes in the order of the table. */
export const schemeNames = [
  'unique-index',
  'unique-index+token',
  'state-machine',
  'guarded',
] as const;
export type SchemeName = (typeof schemeNames)[number];

/** What each of them is, in words. */
export const schemeTexts: Readonly<Record<SchemeName, string>> = {
  'unique-index': 'unique index, transaction of four statements',
  'unique-index+token': 'the same behind a Redis token',
  'state-machine': 'UPDATE … WHERE status',
  guarded: 'Turngate: one guarded call',
};

const insertEvent = 'INSERT INTO load_event (order_no) VALUES ($1) ON CONFLICT DO NOTHING';
const pay = "UPDATE load_order SET status = 'PAID' WHERE order_no = $1 AND status = 'NEW'";

/** The schemes over PostgreSQL. */
export function postgresSchemes(pool: PgPool, redis: Redis): Record<SchemeName, Scheme> {
  const gate = createGate({ records: postgres(pool) });
  const guarded = gate.singleWrite({
    name: 'load.pay',
    key: (orderNo: string) => orderNo,
    statement: `UPDATE load_order SET status = 'PAID'
      WHERE order_no = $1 AND status = 'NEW' RETURNING status`,
    values: (orderNo) => [orderNo],
  });
  const uniqueIndex: Scheme = async (orderNo) => {
    const client = await pool.connect();
    try {
      await client.query('BEGIN');
      const { rowCount } = await client.query({ name: 'i', text: insertEvent, values: [orderNo] });
      if (rowCount === 0) {
        await client.query('ROLLBACK');
        return 'REPEATED';
      }
      await client.query({ name: 'u', text: pay, values: [orderNo] });
      await client.query('COMMIT');
      return 'PAID';
    } finally {
      client.release();
    }
  };
  return {
    'unique-index': uniqueIndex,
    'unique-index+token': withToken(redis, uniqueIndex),
    'state-machine': async (orderNo) => {
      const { rowCount } = await pool.query({ name: 'u', text: pay, values: [orderNo] });
      return rowCount === 1 ? 'PAID' : 'REPEATED';
    },
    guarded: async (orderNo) => ((await guarded(orderNo)).replayed ? 'REPEATED' : 'PAID'),
  };
}

const payMysql = pay.replace('$1', '?');

/** The schemes over MySQL and MariaDB. */
export function mysqlSchemes(pool: MysqlPool, redis: Redis): Record<SchemeName, Scheme> {
  const gate = createGate({ records: mysql(pool) });
  const guarded = gate.singleWrite({
    name: 'load.pay',
    key: (orderNo: string) => orderNo,
    statement: pay,
    values: (orderNo) => [orderNo],
    answer: () => ({ status: 'PAID' }),
  });
  const uniqueIndex: Scheme = async (orderNo) => {
    const connection = await pool.getConnection();
    try {
      await connection.query('BEGIN');
      try {
        await connection.execute('INSERT INTO load_event (order_no) VALUES (?)', [orderNo]);
      } catch (error) {
        await connection.query('ROLLBACK');
        if ((error as { errno?: number }).errno === 1062) return 'REPEATED';
        throw error;
      }
      await connection.execute(payMysql, [orderNo]);
      await connection.query('COMMIT');
      return 'PAID';
    } finally {
      connection.release();
    }
  };
  return {
    'unique-index': uniqueIndex,
    'unique-index+token': withToken(redis, uniqueIndex),
    'state-machine': async (orderNo) => {
      const [result] = await pool.execute(payMysql, [orderNo]);
      return (result as { affectedRows: number }).affectedRows === 1 ? 'PAID' : 'REPEATED';
    },
    guarded: async (orderNo) => ((await guarded(orderNo)).replayed ? 'REPEATED' : 'PAID'),
  };
}

/** The token is a shield only: who finds it spent is answered without the database. */
function withToken(redis: Redis, scheme: Scheme): Scheme {
  return async (orderNo) => {
    const fresh = await redis.set(`load:${orderNo}`, '1', 'EX', 60, 'NX');
    return fresh === null ? 'REPEATED' : await scheme(orderNo);
  };
}
