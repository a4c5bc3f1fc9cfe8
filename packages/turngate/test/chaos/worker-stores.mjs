// Opens the lock store of a worker, over a real client, as a service would.

/** Shorter than a service would have it, so that a silent server is noticed within a test. */
const answerLimitMs = 3_000;

async function redisLocks(client) {
  client.on('error', () => {}); // Connections are broken on purpose.
  const locks = (await import('../../dist/stores/redis/index.js')).redisLocks(client);
  return {
    locks,
    async close() {
      locks.close();
      client.disconnect();
    },
  };
}

const kinds = {
  async redis({ url }) {
    const { Redis } = await import('ioredis');
    return await redisLocks(new Redis(url, { maxRetriesPerRequest: null }));
  },
  async sentinel({ sentinels, name }) {
    const { Redis } = await import('ioredis');
    return await redisLocks(new Redis({ sentinels, name, maxRetriesPerRequest: null }));
  },
  async cluster({ nodes }) {
    const { Cluster } = await import('ioredis');
    return await redisLocks(new Cluster(nodes));
  },
  async redlock({ urls }) {
    const { Redis } = await import('ioredis');
    const { redlock } = await import('../../dist/stores/redis/index.js');
    const clients = urls.map((url) => new Redis(url, { maxRetriesPerRequest: null }));
    for (const client of clients) client.on('error', () => {});
    return {
      locks: redlock(clients),
      async close() {
        for (const client of clients) client.disconnect();
      },
    };
  },
  async postgres({ url, mode }) {
    const { default: pg } = await import('pg');
    const stores = await import('../../dist/stores/postgres/index.js');
    const pool = new pg.Pool({ connectionString: url, max: 3 });
    pool.on('error', () => {});
    if (mode === 'table') {
      return { locks: stores.postgresLocks(pool, { answerLimitMs }), close: () => pool.end() };
    }
    const locks = stores.postgresSessionLocks(pool, { answerLimitMs });
    return {
      locks,
      async close() {
        await locks.close();
        await pool.end();
      },
    };
  },
  async mariadb({ url, mode }) {
    const { createPool } = await import('mysql2/promise');
    const stores = await import('../../dist/stores/mysql/index.js');
    const pool = createPool({ uri: url, connectionLimit: 5 });
    if (mode === 'table') {
      return { locks: stores.mysqlLocks(pool, { answerLimitMs }), close: () => pool.end() };
    }
    const locks = stores.mysqlSessionLocks(pool, { answerLimitMs });
    return {
      locks,
      async close() {
        await locks.close();
        await pool.end();
      },
    };
  },
  async etcd({ url }) {
    const { Etcd3 } = await import('etcd3');
    const { etcdLocks } = await import('../../dist/stores/etcd/index.js');
    const client = new Etcd3({ hosts: url });
    return { locks: etcdLocks(client, { answerLimitMs }), close: async () => client.close() };
  },
  async zookeeper({ url, sessionMs }) {
    const { default: zookeeper } = await import('node-zookeeper-client');
    const { zookeeperLocks } = await import('../../dist/stores/zookeeper/index.js');
    const options = { sessionTimeout: sessionMs, spinDelay: 50 };
    const locks = zookeeperLocks(() => zookeeper.createClient(url, options), { answerLimitMs });
    return { locks, close: () => locks.close() };
  },
};

/** `{locks, close}` for a description like `{kind: 'redis', url}`. */
export async function openStore(store) {
  return await kinds[store.kind](store);
}
