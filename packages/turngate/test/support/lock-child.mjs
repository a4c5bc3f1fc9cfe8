// Increments an unprotected counter under a lock. argv: database URL, lock, rounds, leaseMs, mode.
// mode "work": rounds increments. mode "hang": takes the lock and never lets go. mode "stall": takes
// the lock, reads, waits for SIGCONT long after its lease, then writes with its old fence.
import pg from 'pg';
import { createGate } from '../../dist/index.js';
import { memory } from '../../dist/stores/memory/index.js';
import { postgresLocks } from '../../dist/stores/postgres/index.js';

const [url, name, rounds, leaseMs, mode] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: url, max: 3 });
pool.on('error', () => undefined);
const gate = createGate({ records: memory(), locks: postgresLocks(pool) });
const options = { leaseMs: Number(leaseMs), waitMs: 20_000 };
const say = (line) => process.stdout.write(`${line}\n`);

async function increment(lock) {
  const { rows } = await pool.query('SELECT n FROM counter WHERE name = $1', [name]);
  await pool.query('INSERT INTO fence_log (name, fence, pid) VALUES ($1, $2, $3)', [
    name,
    String(lock.fence),
    process.pid,
  ]);
  lock.assertHeld();
  await pool.query('UPDATE counter SET n = $2 WHERE name = $1', [name, rows[0].n + 1]);
}

if (mode === 'work') {
  for (let i = 0; i < Number(rounds); i++) await gate.lock(name, options, increment);
  say('done');
  await pool.end();
} else if (mode === 'hang') {
  await gate.acquire(name, options);
  say('holding');
  setInterval(() => {}, 1_000);
} else {
  const lock = await gate.acquire(name, options);
  const { signal } = lock;
  process.on('SIGCONT', () => say(`woken held=${lock.isHeld()} aborted=${signal.aborted}`));
  const writeLate = async () => {
    // A late write past the lease: only the fence beside the data stops it.
    const { rowCount } = await pool.query(
      'UPDATE counter SET n = -1, fence = $2 WHERE name = $1 AND fence < $2',
      [name, String(lock.fence)],
    );
    say(`late write ${rowCount}`);
  };
  process.on('SIGUSR2', () => void writeLate());
  say('holding');
  setInterval(() => {}, 1_000);
}
