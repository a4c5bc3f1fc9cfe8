// Locks once on PostgreSQL, ends its pool and must then end by itself. argv: url, table | session.
import pg from 'pg';
import { createGate } from '../../dist/index.js';
import { memory } from '../../dist/stores/memory/index.js';
import { postgresLocks, postgresSessionLocks } from '../../dist/stores/postgres/index.js';

const [url, mode] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: url, max: 2 });
pool.on('error', () => undefined);
const locks = mode === 'table' ? postgresLocks(pool) : postgresSessionLocks(pool);
const gate = createGate({ records: memory(), locks });
await (await gate.acquire('exit')).release();
await locks.close?.();
await pool.end();
process.stdout.write('done\n');
