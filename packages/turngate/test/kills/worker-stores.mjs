// Opens what a worker of the kill suite works on, over real clients, as a service would.

async function postgres({ url }) {
  const { default: pg } = await import('pg');
  const stores = await import('../../dist/stores/postgres/index.js');
  const pool = new pg.Pool({ connectionString: url, max: 10 });
  pool.on('error', () => {});
  return {
    records: stores.postgres(pool),
    staged: stores.postgresStaged(pool),
    database: stores.postgresDatabase(pool),
    close: () => pool.end(),
  };
}

async function mariadb({ url }) {
  const { createPool } = await import('mysql2/promise');
  const stores = await import('../../dist/stores/mysql/index.js');
  const pool = createPool({ uri: url, connectionLimit: 10, connectTimeout: 60_000 });
  return {
    records: stores.mysql(pool),
    staged: stores.mysqlStaged(pool),
    database: stores.mysqlDatabase(pool),
    close: () => pool.end(),
  };
}

/** Records in Redis; what guards the effects is in PostgreSQL. */
async function redis({ url, redisUrl, prefix, leaseMs }) {
  const { Redis } = await import('ioredis');
  const { redisRecords } = await import('../../dist/stores/redis/index.js');
  const client = new Redis(redisUrl);
  const { database, close } = await postgres({ url });
  return {
    records: redisRecords(client, { prefix, leaseMs }),
    database,
    async close() {
      client.disconnect();
      await close();
    },
  };
}

const kinds = { postgres, mariadb, redis };

/** `{records, staged?, database, close}` of a kind. */
export async function openStore({ kind, ...config }) {
  return await kinds[kind](config);
}
