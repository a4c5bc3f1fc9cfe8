/** A MariaDB database of its own for each test file, on the server of the test run. */
import { randomBytes } from 'node:crypto';
import { createConnection, createPool, type Pool } from 'mysql2/promise';
import { serverUrl } from './servers.ts';

/** An empty database. */
export interface MariadbDatabase {
  readonly url: string;
  /** For looking in from outside. */
  readonly admin: Pool;
  drop(): Promise<void>;
}

/** Creates it; call `drop` at the end of the file. */
export async function createMariadbDatabase(): Promise<MariadbDatabase> {
  const name = `turngate_test_${randomBytes(6).toString('hex')}`;
  await asServerAdmin(`CREATE DATABASE ${name}`);
  const url = new URL(serverUrl('mariadb'));
  url.pathname = `/${name}`;
  const admin = createPool({ uri: url.href, connectionLimit: 3 });
  return {
    url: url.href,
    admin,
    async drop() {
      await admin.end();
      await asServerAdmin(`DROP DATABASE ${name}`);
    },
  };
}

async function asServerAdmin(statement: string): Promise<void> {
  const connection = await createConnection(serverUrl('mariadb'));
  try {
    await connection.query(statement);
  } finally {
    await connection.end();
  }
}
