/** Holds a table, so that whoever needs it has to wait while the test looks around. */
import { createConnection } from 'mysql2/promise';
import pg from 'pg';

export interface HeldTable {
  /** True when somebody waits for a table. */
  isWaitedFor(): Promise<boolean>;
  release(): Promise<void>;
}

export async function holdTable(databaseUrl: string, table: string): Promise<HeldTable> {
  if (databaseUrl.startsWith('mysql:')) {
    const connection = await createConnection(databaseUrl);
    await connection.query(`LOCK TABLES ${table} WRITE`);
    return {
      async isWaitedFor() {
        const [rows] = await connection.query(
          `SELECT 1 FROM information_schema.PROCESSLIST
           WHERE DB = DATABASE() AND STATE LIKE 'Waiting for table%'`,
        );
        return (rows as unknown[]).length > 0;
      },
      release: () => connection.end(), // The lock ends with it.
    };
  }
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query(`BEGIN; LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
  return {
    async isWaitedFor() {
      const { rows } = await client.query(
        `SELECT 1 FROM pg_locks WHERE NOT granted
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
      );
      return rows.length > 0;
    },
    release: () => client.end(),
  };
}
