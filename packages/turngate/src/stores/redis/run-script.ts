/** Scripts by digest; a server that does not know one gets its text, which loads it there. */
import type { RedisDriver, Script } from './driver.ts';
import { isScriptMissing, redisError } from './redis-error.ts';

/**
 * Runs a script. One promise is added to the client's own, because this is the hot path.
 *
 * @param args a place for the digest, number of keys, keys, arguments; kept by us
 * @throws STORE_UNAVAILABLE
 */
export function runScript<T>(
  driver: RedisDriver,
  script: Script,
  args: string[],
  toAnswer: (reply: unknown) => T | Promise<T>,
): Promise<T> {
  args[0] = script.sha1;
  // SCRIPT LOAD and a second EVALSHA could reach two nodes of a cluster; EVAL does both on one.
  return driver.script('EVALSHA', args).then(toAnswer, (error: unknown) => {
    if (!isScriptMissing(error)) throw redisError(error);
    return driver
      .script('EVAL', [script.lua, ...args.slice(1)])
      .then(toAnswer, (second: unknown) => {
        throw redisError(second);
      });
  });
}
