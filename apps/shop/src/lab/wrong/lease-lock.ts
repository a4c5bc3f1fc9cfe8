/** The lock people write by hand: SET NX PX with an owner, here as one table row. No renewal. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';

export interface LeaseTiming {
  readonly leaseMs: number;
  readonly waitMs: number;
}

const pollMs = { min: 25, spread: 20 };

const takeLock = `INSERT INTO lab_lock (name, owner, expires_at)
  VALUES ($1, $2, clock_timestamp() + $3 * interval '1 millisecond')
  ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at
  WHERE lab_lock.expires_at <= clock_timestamp()`;

export async function withLease<T>(
  pool: Pool,
  name: string,
  { leaseMs, waitMs }: LeaseTiming,
  body: () => Promise<T>,
): Promise<T> {
  const owner = randomUUID();
  const deadlineMonoMs = performance.now() + waitMs;
  while ((await pool.query(takeLock, [name, owner, leaseMs])).rowCount === 0) {
    if (performance.now() > deadlineMonoMs) throw new Error('busy: somebody else has the lock');
    await sleep(pollMs.min + Math.random() * pollMs.spread);
  }
  try {
    return await body();
  } finally {
    // Checks the owner, as it should: the flaws of its users are elsewhere.
    await pool.query('DELETE FROM lab_lock WHERE name = $1 AND owner = $2', [name, owner]);
  }
}
