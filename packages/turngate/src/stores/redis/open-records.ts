/** Opening the record store over a client the caller made and will end. */
import type { RecordStore } from '../../contract/record-store.ts';
import { integerOption, knownOptions, optionError } from '../../core/option.ts';
import { type Runtime, systemRuntime } from '../../runtime/runtime.ts';
import { driverOf, type RedisClient } from './clients.ts';
import { checkPrefix } from './keys.ts';
import { RedisRecords } from './redis-records.ts';

/** Options of {@link redisRecords}. */
export interface RedisRecordsOptions {
  /**
   * Starts every key of ours, after a key prefix of the client. All processes that share records must
   * agree on both.
   *
   * @default 'turngate:'
   */
  readonly prefix?: string;
  /**
   * For how long a claim outlives its process. It is renewed three times in each lease while the work
   * runs, so it need not be longer than the work; it must be longer than any pause of the process or
   * the network, because a claim that has lapsed is run by another process.
   *
   * @unit milliseconds, integer, 100 to 3_600_000
   * @default 10_000
   */
  readonly leaseMs?: number;
  /**
   * Does the server keep what it has confirmed over a crash (appendonly yes, appendfsync always)? Only
   * shown as the capability `durable`; Redis does not tell it to everybody.
   *
   * @default false
   */
  readonly durable?: boolean;
  /** Clocks for tests. @internal */
  readonly runtime?: Runtime;
}

/**
 * Records in Redis (5 or newer), for work that has no SQL transaction: a call to a service that
 * honours a key of its own, or work that may be repeated. Handlers get no transaction (`tx` is
 * undefined) and `within` is refused.
 *
 * At least once, not exactly once: the record and the work are not one commit. A process that dies in
 * between leaves work without a record, and after its lease a repeat runs again; so does a repeat after
 * a lost lease, a failover that forgot the newest writes, or an eviction. Where doing it twice does
 * harm, keep the record in the database of the work, or guard the work by a unique number there.
 *
 * @param client ioredis `Redis` or `Cluster`, node-redis client, cluster or sentinel; you end it
 * @throws OPTION_INVALID before any I/O
 */
export function redisRecords(
  client: RedisClient,
  options: RedisRecordsOptions = {},
): RecordStore<undefined> {
  knownOptions('Redis record options', options, ['prefix', 'leaseMs', 'durable', 'runtime']);
  const { durable = false } = options;
  if (typeof durable !== 'boolean') throw optionError('durable', 'true or false', durable);
  return new RedisRecords({
    driver: driverOf(client),
    runtime: options.runtime ?? systemRuntime,
    prefix: checkPrefix('prefix', options.prefix ?? 'turngate:'),
    leaseMs: integerOption('leaseMs', options.leaseMs, {
      min: 100,
      max: 3_600_000,
      fallback: 10_000,
    }),
    durable,
  });
}
