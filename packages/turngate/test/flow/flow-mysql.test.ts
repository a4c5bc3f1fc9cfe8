/** Flows on MariaDB. */
import type { PoolConnection } from 'mysql2/promise';
import { mysqlSession } from '../../src/stores/mysql/index.ts';
import { createDatabase, ownTransaction } from '../mysql/support.ts';
import { describeWith } from '../support/servers.ts';
import { type FlowTarget, flowLaws } from './flow-laws.ts';

const flagsOff = { flags: ['-FOUND_ROWS'] as unknown as string[] };

async function open(config: object): Promise<FlowTarget<PoolConnection>> {
  const database = await createDatabase();
  const pool = database.pool(config);
  await pool.query(`CREATE TABLE shop_order (id BIGINT PRIMARY KEY, status VARCHAR(20) NOT NULL,
    version INT NOT NULL DEFAULT 1, note TEXT, cents BIGINT, paid_at DATETIME(3)) CHARSET utf8mb4`);
  async function rowsOf<Row>(sql: string, id: string): Promise<Row[]> {
    const [rows] = await pool.query({ sql, supportBigNumbers: true } as never, [id]);
    return rows as Row[];
  }
  return {
    insert: (id) =>
      pool.query('INSERT INTO shop_order (id, status) VALUES (?, ?)', [id, 'created']),
    async row(id) {
      const rows = await rowsOf<Record<string, unknown>>(
        'SELECT * FROM shop_order WHERE id = ?',
        id,
      );
      return rows[0] ?? {};
    },
    async history(id) {
      const rows = await rowsOf<{ line: string }>(
        `SELECT CONVERT(CONCAT(version, ' ', event, ' ', from_state, '>', to_state) USING utf8mb4) AS line
         FROM turngate_transition WHERE entity_id = ? ORDER BY version`,
        id,
      );
      return rows.map(({ line }) => line);
    },
    transaction: (body) => ownTransaction(pool, body),
    look: (tx) => tx.query('SELECT * FROM shop_order'),
    close: () => database.drop(),
  };
}

for (const [name, config] of [
  ['found rows on', { connectionLimit: 25 }],
  ['found rows off, several statements per trip', { ...flagsOff, multipleStatements: true }],
] as const) {
  describeWith('mariadb', `a flow on MariaDB, ${name}`, () =>
    flowLaws(mysqlSession, () => open(config)),
  );
}
