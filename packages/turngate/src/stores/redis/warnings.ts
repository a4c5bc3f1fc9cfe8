/** Settings of the server that take locks and records away, told once as an event. */
import type { RecordId } from '../../core/record-id.ts';
import { emit, listened } from '../../runtime/events.ts';
import type { RedisDriver } from './driver.ts';

/** Asks once, where somebody listens and the server lets us. Never rejects, never waited for. */
export function warnOfEviction(driver: RedisDriver, store: string): void {
  if (!listened('lock')) return;
  void evictingPolicy(driver).then((policy) => {
    if (policy === undefined) return;
    const warning = `maxmemory-policy ${policy} may evict locks; use a server with noeviction`;
    emit('lock', { type: 'store-warning', lock: '', store, warning });
  });
}

/** The same for records: what is evicted runs again. */
export function warnOfEvictedRecords(driver: RedisDriver, id: RecordId): void {
  void evictingPolicy(driver).then((policy) => {
    if (policy === undefined) return;
    const warning = `maxmemory-policy ${policy} may evict records, and their keys run again; use a server with noeviction`;
    emit('idempotency', { ...id, type: 'store-warning', warning });
  });
}

/** The policy by which the server may throw keys away; undefined when it does not, or does not say. */
async function evictingPolicy(driver: RedisDriver): Promise<string | undefined> {
  if (driver.cluster) return undefined;
  try {
    const reply = String(await driver.command('INFO', ['memory']));
    const policy = /maxmemory_policy:(\S+)/.exec(reply)?.[1] ?? 'noeviction';
    const limit = Number(/maxmemory:(\d+)/.exec(reply)?.[1] ?? 0);
    return limit === 0 || policy === 'noeviction' ? undefined : policy;
  } catch {
    return undefined; // Not ours to read.
  }
}
