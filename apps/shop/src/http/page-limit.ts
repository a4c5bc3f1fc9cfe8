/** How often one client may ask for a page: a token bucket per address. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { memoryTokenBuckets, redisTokenBuckets, type TokenBuckets } from 'turngate/limiter';
import type { SharedRedis } from '../database/page-cache.ts';
import { ShopError } from '../trade/shop-error.ts';

/** The limit of one client address. */
export interface PageLimit {
  /**
   * What it may ask in the long run; 0: as often as it likes.
   *
   * @unit requests per second, integer, 0 to 1_000_000
   */
  readonly perSecond: number;
  /**
   * What it may ask at once after a pause.
   *
   * @unit requests, integer, 1 to 1_000_000
   */
  readonly burst: number;
}

/**
 * The hook that refuses with TOO_MANY_REQUESTS. The client is the peer of the connection; headers that
 * claim another address are not believed.
 */
export function pageLimit(
  { perSecond, burst }: PageLimit,
  redis: SharedRedis | undefined,
): (request: FastifyRequest, reply: FastifyReply) => Promise<void> {
  if (perSecond === 0) return async () => undefined;
  const buckets = redis === undefined ? memoryTokenBuckets() : bucketsOver(redis);
  return async (request) => {
    const options = { capacity: burst, refillPerSecond: perSecond };
    const { allowed, retryAfterMs } = await buckets.take(request.ip, options);
    if (allowed) return;
    const message = `more than ${perSecond} requests per second for this page`;
    throw new ShopError('TOO_MANY_REQUESTS', message, {}, retryAfterMs);
  };
}

/** While Redis is away, each process counts by itself: a limit must not take the shop with it. */
function bucketsOver({ client, scope }: SharedRedis): TokenBuckets {
  const shared = redisTokenBuckets(client, { prefix: `turngate:shop:${scope}:bucket:` });
  const local = memoryTokenBuckets();
  return {
    take: (key, options) =>
      client.status === 'ready'
        ? shared.take(key, options).catch(() => local.take(key, options))
        : local.take(key, options),
  };
}
