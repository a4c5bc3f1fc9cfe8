/** Where cached pages are kept: in Redis for all processes of a shop, else in this one. */
import { createHash } from 'node:crypto';
import type { Redis } from 'ioredis';
import type { CachedLoad, FlightCache } from 'turngate';

/** A Redis that several shops may use, and the part of its names that is this shop's. */
export interface SharedRedis {
  readonly client: Redis;
  /** Same in all processes over one database, different for another one: `databaseScope(url)`. */
  readonly scope: string;
}

const entriesMax = 1_000;

/** Names the database of a URL without telling where it is, or by which password. */
export function databaseScope(url: string): string {
  const { host, pathname } = new URL(url);
  return createHash('sha256').update(`${host}${pathname}`).digest('hex').slice(0, 16);
}

/** A Redis that cannot be reached at once is a cache that is empty: pages are served without it. */
export function pageCache<Value>(redis: SharedRedis | undefined): FlightCache<Value> {
  const local = memoryCache<Value>();
  if (redis === undefined) return local;
  const shared = redisCache<Value>(redis);
  const reachable = (): boolean => redis.client.status === 'ready';
  return {
    get: (key) => (reachable() ? shared.get(key).catch(() => local.get(key)) : local.get(key)),
    async set(key, entry, how) {
      await local.set(key, entry, how);
      if (reachable()) await shared.set(key, entry, how);
    },
  };
}

function redisCache<Value>({ client, scope }: SharedRedis): FlightCache<Value> {
  const name = (key: string): string => `turngate:shop:${scope}:page:${key}`;
  return {
    async get(key) {
      const text = await client.get(name(key));
      return text === null ? undefined : (JSON.parse(text) as CachedLoad<Value>);
    },
    async set(key, entry, { keepMs }) {
      await client.set(name(key), JSON.stringify(entry), 'PX', keepMs);
    },
  };
}

/** The entries set last; a page that nobody loads again makes room. */
function memoryCache<Value>(): FlightCache<Value> {
  const entries = new Map<string, { entry: CachedLoad<Value>; untilMs: number }>();
  return {
    async get(key) {
      const found = entries.get(key);
      return found !== undefined && found.untilMs > Date.now() ? found.entry : undefined;
    },
    async set(key, entry, { keepMs }) {
      entries.delete(key);
      entries.set(key, { entry, untilMs: Date.now() + keepMs });
      const [oldest] = entries.keys();
      if (entries.size > entriesMax) entries.delete(oldest as string);
    },
  };
}
