/** Submit tokens in Redis: one script per verb. Redis and your database commit apart. */
import { TurngateError } from '../core/errors.ts';
import { integerOption, knownOptions, optionError } from '../core/option.ts';
import { type ScriptClient, script, scriptRunner } from '../redis/script-client.ts';
import { attemptIds, type Runtime, systemRuntime } from '../runtime/runtime.ts';
import {
  checkPurpose,
  type GivenToken,
  type IssuedToken,
  invalidToken,
  memoryRange,
  repeatedSubmit,
  submitTokenDigest,
  type TokenPurpose,
  ttlRange,
} from './token.ts';

const head = `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`;

// A token is a hash: expires, and once it is spent: spent, owner, and done when the work is.
const issueScript = script(`-- issue: a new token.
-- keys: 1 token
-- args: 1 how long it may be spent (ms)
-- returns: when it ends (epoch ms), as text
${head}local expires = string.format('%.0f', now + ARGV[1])
redis.call('HSET', KEYS[1], 'expires', expires)
redis.call('PEXPIREAT', KEYS[1], expires)
return expires
`);

const consumeScript =
  script(`-- consume: spends a token; the same owner may ask again, for its answer may be lost.
-- keys: 1 token
-- args: 1 owner, 2 how long a spent token is remembered after its end (ms)
-- returns: 1 ours, 0 no such token, 2 spent, 3 spent and done; then when it was spent (epoch ms), as text
local spent = redis.call('HMGET', KEYS[1], 'expires', 'spent', 'owner', 'done')
if spent[2] then
  if spent[3] == ARGV[1] then return {1, spent[2]} end
  return {spent[4] and 3 or 2, spent[2]}
end
${head}if not spent[1] or tonumber(spent[1]) <= now then return {0, '0'} end
local text = string.format('%.0f', now)
redis.call('HSET', KEYS[1], 'spent', text, 'owner', ARGV[1])
redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', spent[1] + ARGV[2]))
return {1, text}
`);

const completeScript =
  script(`-- complete: the work is done; the token cannot be given back any more.
-- keys: 1 token
-- args: 1 owner
-- returns: 1, or 0 when it is not the owner's
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'done', '1')
return 1
`);

const undoScript = script(`-- undo: gives a spent token back, to end when it would have ended.
-- keys: 1 token
-- args: 1 owner
-- returns: 1, or 0 when it is not the owner's or the work is done
local held = redis.call('HMGET', KEYS[1], 'owner', 'done', 'expires')
if held[1] ~= ARGV[1] or held[2] then return 0 end
redis.call('HDEL', KEYS[1], 'spent', 'owner')
redis.call('PEXPIREAT', KEYS[1], held[3])
return 1
`);

/** Options of {@link redisSubmitTokens}. */
export interface RedisTokensOptions {
  /**
   * How long a token may be spent.
   *
   * @unit milliseconds, integer, 1_000 to 7 days
   * @default 1_800_000 (30 minutes)
   */
  readonly ttlMs?: number;
  /**
   * How long after its end a spent token is remembered.
   *
   * @unit milliseconds, integer, 1_000 to 3_650 days
   * @default 86_400_000 (1 day)
   */
  readonly memoryMs?: number;
  /** Before every key. @default 'turngate:token:' */
  readonly prefix?: string;
  readonly runtime?: Runtime;
}

/** A token that this caller has spent. Call one of the two, once it is known how the work ended. */
export interface SpentToken {
  /**
   * The work is done: the token stays spent for good. When this is lost too, the token stays spent all
   * the same; repeats are then told `outcome: 'unknown'`.
   *
   * @throws STORE_UNAVAILABLE
   */
  complete(): Promise<void>;
  /**
   * The work was certainly not done: the token may be spent again until its end. Never call it when
   * you do not know, such as after a lost COMMIT. False: it is not ours any more.
   *
   * @throws STORE_UNAVAILABLE
   */
  undo(): Promise<boolean>;
}

/** Tokens outside the database of the work. */
export interface RedisSubmitTokens {
  /** @throws OPTION_INVALID before any I/O, STORE_UNAVAILABLE */
  issue(purpose: TokenPurpose): Promise<IssuedToken>;
  /**
   * Spends a token before the work.
   *
   * @throws SUBMIT_TOKEN_INVALID; REPEATED_SUBMIT, `outcome` "unknown" until the first has called
   *   `complete`; STORE_UNAVAILABLE: whether it was spent may be unknown, so do not start the work
   */
  consume(given: GivenToken): Promise<SpentToken>;
}

/**
 * Tokens in Redis over an ioredis or node-redis client, for work that has no SQL transaction.
 *
 * At most once as long as Redis keeps its data, and not atomic with a database: a process that dies
 * between `consume` and `undo` leaves a spent token without its work, and the client must fetch a new
 * one and look first whether the work was done. A failover that loses the newest writes, or eviction,
 * can make a spent token good again: where that matters, spend tokens in the transaction
 * (`createSubmitTokens`) or guard the work by a unique number in its database.
 *
 * @throws OPTION_INVALID before any I/O
 */
export function redisSubmitTokens(
  client: ScriptClient,
  options: RedisTokensOptions = {},
): RedisSubmitTokens {
  knownOptions('Redis token options', options, ['ttlMs', 'memoryMs', 'prefix', 'runtime']);
  const run = scriptRunner(client);
  const ttlMs = String(integerOption('ttlMs', options.ttlMs, ttlRange));
  const memoryMs = String(integerOption('memoryMs', options.memoryMs, memoryRange));
  const { prefix = 'turngate:token:', runtime = systemRuntime } = options;
  if (typeof prefix !== 'string') throw optionError('prefix', 'a string', prefix);
  const nextOwner = attemptIds(runtime);
  return {
    async issue(purpose) {
      checkPurpose(purpose);
      const token = runtime.randomId();
      const digest = submitTokenDigest({ ...purpose, token });
      const expiresMs = await run(issueScript, [prefix + digest], [ttlMs]);
      return { token, expiresAt: new Date(Number(expiresMs)) };
    },
    async consume(given) {
      const keys = [prefix + submitTokenDigest(given)];
      const owner = nextOwner();
      const [kind, spentMs] = (await run(consumeScript, keys, [owner, memoryMs])) as unknown[];
      if (Number(kind) === 0) throw invalidToken();
      if (Number(kind) !== 1) {
        throw repeatedSubmit(Number(spentMs), Number(kind) === 3 ? 'applied' : 'unknown');
      }
      return {
        async complete() {
          if (Number(await run(completeScript, keys, [owner])) === 1) return;
          throw new TurngateError('STORE_UNAVAILABLE', 'Redis has forgotten the spent token', {
            outcome: 'applied',
          });
        },
        undo: async () => Number(await run(undoScript, keys, [owner])) === 1,
      };
    },
  };
}
