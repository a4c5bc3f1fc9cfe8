// Idempotency: first calls and repeats on each store, crowds on one key, durable steps, clean-up.
import { counts } from '../idempotency/counts.mjs';
import { mariadbCalls } from '../idempotency/mariadb.mjs';
import { postgresCalls } from '../idempotency/postgres.mjs';
import { purge } from '../idempotency/purge.mjs';
import { redisCalls } from '../idempotency/redis.mjs';
import { installPeers } from '../lib/install-peers.mjs';
import { startBenchRedis } from '../lib/redis.mjs';
import { startSqlServers } from '../lib/sql-suite.mjs';

export const idempotency = {
  id: 'idempotency',
  prepare: installPeers,
  async open(context) {
    const sql = await startSqlServers(context);
    const redis = await startBenchRedis();
    return {
      ...sql,
      redis,
      versions: { ...sql.versions, 'redis-server': redis.version },
      async stop() {
        await redis.stop();
        await sql.stop();
      },
    };
  },
  scenarios: [postgresCalls, mariadbCalls, redisCalls, counts, purge],
};
