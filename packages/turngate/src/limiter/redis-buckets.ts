/** Buckets in Redis: one script, the server's clock, whole numbers. */
import { optionError } from '../core/option.ts';
import { type ScriptClient, script, scriptRunner } from '../redis/script-client.ts';
import { type TokenBuckets, takeAnswer, takePlan } from './token-bucket.ts';

// A bucket is "amount time", in nano-tokens and microseconds. It expires when it would be full, which
// is what a missing one means. A refused take writes nothing, so that expiry stays as it was: should
// the server's clock be set back, refilling waits no longer than that.
const takeScript = script(`-- take: refill by the server's clock, then take all or nothing.
-- keys: 1 bucket
-- args: 1 take (nano-tokens), 2 capacity (nano-tokens), 3 rate (nano-tokens per microsecond)
-- returns: 1 allowed (1 or 0), 2 the amount left, as text
local take, capacity, rate = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local amount, at = capacity, now
local held = redis.call('GET', KEYS[1])
if held then
  local amountText, atText = held:match('^(%d+) (%d+)$')
  if not amountText then return redis.error_reply('WRONGTYPE not a token bucket: ' .. KEYS[1]) end
  amount, at = tonumber(amountText), tonumber(atText)
  local missing = capacity - amount
  local elapsed = math.max(0, now - at)
  if missing <= 0 or elapsed >= math.ceil(missing / rate) then
    amount = capacity
  else
    amount = amount + elapsed * rate
  end
  at = math.max(at, now)
end
if amount < take then return {0, string.format('%.0f', amount)} end
amount = amount - take
local fullMs = math.ceil((capacity - amount) / rate / 1000)
redis.call('SET', KEYS[1], string.format('%.0f %.0f', amount, at), 'PX', string.format('%.0f', fullMs))
return {1, string.format('%.0f', amount)}
`);

/** Options of {@link redisTokenBuckets}. */
export interface RedisBucketsOptions {
  /** Before every key. @default 'turngate:bucket:' */
  readonly prefix?: string;
}

/**
 * Keeps buckets in Redis, over an ioredis or node-redis client, single or cluster: one key per
 * bucket, which vanishes when the bucket is full again.
 *
 * Not promised: memory over a failover that loses the newest writes; what was taken then can be
 * taken again, at most `capacity` more.
 *
 * @throws OPTION_INVALID before any I/O; `take` also STORE_UNAVAILABLE, outcome unknown
 */
export function redisTokenBuckets(
  client: ScriptClient,
  options: RedisBucketsOptions = {},
): TokenBuckets {
  const run = scriptRunner(client);
  const { prefix = 'turngate:bucket:' } = options;
  if (typeof prefix !== 'string') throw optionError('prefix', 'a string', prefix);
  return {
    async take(key, takeOptions) {
      const plan = takePlan(key, takeOptions);
      const args = [plan.takeNano, plan.capacityNano, plan.rate].map(String);
      const [allowed, amount] = (await run(takeScript, [prefix + key], args)) as [number, string];
      return takeAnswer(Number(allowed) === 1, Number(amount), plan);
    },
  };
}
