/** The shop's store over a pool of the lab: what a node, or the storm itself, works with. */
import type { Pool } from 'pg';
import { createGate, type Gate } from 'turngate';
import { memoryLocks } from 'turngate/memory';
import { postgresShop } from '../database/postgres.ts';
import type { Store, Tx } from '../trade/store.ts';

/** Locks as in the shop with several processes and no Redis: each process has its own. */
export function openStore(pool: Pool): Store & { readonly gate: Gate<Tx> } {
  const { records, staged, database, snapshot } = postgresShop(pool);
  return { gate: createGate({ records, staged, locks: memoryLocks() }), database, snapshot };
}
