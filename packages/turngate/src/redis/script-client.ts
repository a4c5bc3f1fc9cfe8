/** Running Lua on a Redis client handed in by the caller; the client is told by its shape. */
import { createHash } from 'node:crypto';
import { TurngateError } from '../core/errors.ts';
import { optionError } from '../core/option.ts';

/** The part of an ioredis client or cluster that is called. */
export interface IoredisScripts {
  evalsha(sha: string, keyCount: number, ...keysAndArgs: string[]): Promise<unknown>;
  eval(script: string, keyCount: number, ...keysAndArgs: string[]): Promise<unknown>;
}

/** The part of a node-redis client or cluster that is called. */
export interface NodeRedisScripts {
  evalSha(sha: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
}

/** A client that can run scripts: ioredis or node-redis, single, sentinel or cluster. */
export type ScriptClient = IoredisScripts | NodeRedisScripts;

/** A script with its keys and arguments, answered by what it returned. */
export type RunScript = (
  script: Script,
  keys: readonly string[],
  args: readonly string[],
) => Promise<unknown>;

/** A script and its digest. */
export interface Script {
  readonly text: string;
  readonly sha: string;
}

/** Computes the digest once, at load time. */
export function script(text: string): Script {
  return { text, sha: createHash('sha1').update(text).digest('hex') };
}

/**
 * Runs scripts by digest. A server that does not know one (restart, failover, SCRIPT FLUSH) gets the
 * text, which also loads it on that very node.
 *
 * @throws OPTION_INVALID when the client is neither
 */
export function scriptRunner(client: unknown): RunScript {
  const send = sender(client);
  return async ({ text, sha }, keys, args) => {
    try {
      return await send(sha, true, keys, args);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.includes('NOSCRIPT')) throw translated(error);
    }
    return await send(text, false, keys, args).catch((error: unknown) => {
      throw translated(error);
    });
  };
}

type Send = (
  code: string,
  bySha: boolean,
  keys: readonly string[],
  args: readonly string[],
) => Promise<unknown>;

function sender(client: unknown): Send {
  const has = (name: string): boolean =>
    typeof (client as Record<string, unknown> | null | undefined)?.[name] === 'function';
  if (has('evalSha')) {
    const node = client as NodeRedisScripts;
    return (code, bySha, keys, args) =>
      node[bySha ? 'evalSha' : 'eval'](code, { keys: [...keys], arguments: [...args] });
  }
  if (has('evalsha')) {
    const io = client as IoredisScripts;
    return (code, bySha, keys, args) =>
      io[bySha ? 'evalsha' : 'eval'](code, keys.length, ...keys, ...args);
  }
  throw optionError('client', 'an ioredis or node-redis client', client);
}

/**
 * A reply that begins with an upper-case word comes from the server and is passed on. Everything
 * else means that the command may or may not have run.
 */
function translated(error: unknown): unknown {
  if (error instanceof Error && /^[A-Z]+ /.test(error.message)) return error;
  return new TurngateError('STORE_UNAVAILABLE', 'Redis did not answer', {
    cause: error,
    outcome: 'unknown',
  });
}
