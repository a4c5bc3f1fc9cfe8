/** Fences beside a Redis key: one script enters and reads, one checks and writes. */
import { optionError } from '../core/option.ts';
import { type RunScript, type ScriptClient, script, scriptRunner } from '../redis/script-client.ts';
import { checkFence, checkResource, staleError } from './fence-number.ts';

// Fences are longer than the integers Lua's doubles hold: they are compared as decimal texts.
const enterScript = script(`-- enter: raise the mark unless it is higher, then read the data key.
-- keys: 1 mark, 2 data
-- args: 1 fence, 2 command, 3.. arguments after the key
-- returns: 1 "entered" or "stale", 2 the mark, 3 the answer of the command
local mark = redis.call('GET', KEYS[1])
if mark and (#mark > #ARGV[1] or (#mark == #ARGV[1] and mark > ARGV[1])) then
  return {'stale', mark}
end
if mark ~= ARGV[1] then redis.call('SET', KEYS[1], ARGV[1]) end
return {'entered', ARGV[1], redis.call(ARGV[2], KEYS[2], unpack(ARGV, 3))}
`);

const writeScript = script(`-- write: run a command on the data key if the mark is this very fence.
-- keys: 1 mark, 2 data
-- args: 1 fence, 2 command ("" to only check), 3.. arguments after the key
-- returns: 1 "written" or "stale", 2 the mark, 3 the answer of the command
local mark = redis.call('GET', KEYS[1])
if mark ~= ARGV[1] then return {'stale', mark or ''} end
if ARGV[2] == '' then return {'written', mark} end
return {'written', mark, redis.call(ARGV[2], KEYS[2], unpack(ARGV, 3))}
`);

/** Options of {@link redisFence}. */
export interface RedisFenceOptions {
  /** Appended to a data key to name its mark. @default ':turngate-fence' */
  readonly markSuffix?: string;
}

/** Entering Redis keys with a fence. */
export interface RedisFence {
  /**
   * Raises the key's mark to this fence and reads the key, in one step.
   *
   * @throws FENCE_STALE when a newer holder has entered
   * @throws STORE_UNAVAILABLE when there was no answer; entering again is harmless
   */
  enter(target: {
    /** The data key. In a cluster its mark is in the same slot. */
    readonly key: string;
    readonly fence: bigint;
    /** How to read: a command whose first argument is the key, and what follows it. @default GET */
    readonly read?: readonly [command: string, ...args: string[]];
  }): Promise<EnteredKey>;
}

/** A key entered with a fence; the only way to a write. */
export interface EnteredKey {
  /** What the reading command answered: for GET a text, or null when there is no such key. */
  readonly value: unknown;
  /** The fence that entered. */
  readonly fence: bigint;
  /**
   * Runs one command on the key if the mark is still ours, like `write('SET', text, 'PX', '1000')`.
   * A lost answer leaves the outcome unknown, as with any write: enter again and look.
   *
   * @throws FENCE_STALE when a newer holder has entered; nothing was changed
   */
  write(command: string, ...args: string[]): Promise<unknown>;
  /** Is the mark still ours, right now? A later write must ask by itself. @throws FENCE_STALE */
  check(): Promise<void>;
}

/**
 * Fences for Redis data, over an ioredis or node-redis client. The mark is a key beside the data and
 * has no expiry, because it must live at least as long as any holder.
 *
 * Not promised: more than Redis keeps. If a failover or an eviction loses the mark, a late holder
 * that enters again is let in; one that only checks is refused. In a cluster, a client with a
 * `keyPrefix` needs keys that have a tag in braces of their own.
 *
 * @throws OPTION_INVALID before any I/O
 */
export function redisFence(client: ScriptClient, options: RedisFenceOptions = {}): RedisFence {
  const run = scriptRunner(client);
  const { markSuffix = ':turngate-fence' } = options;
  checkResource(markSuffix);
  return {
    async enter({ key, fence, read = ['GET'] }) {
      const keys = [markKey(key, markSuffix), key];
      const args = [String(checkFence(fence)), ...read];
      const [answer, mark, value] = (await run(enterScript, keys, args)) as unknown[];
      if (answer !== 'entered') throw staleError(`key "${key}"`, fence, asFence(mark));
      return enteredKey(run, keys, fence, value ?? null);
    },
  };
}

function enteredKey(run: RunScript, keys: string[], fence: bigint, value: unknown): EnteredKey {
  const write = async (command: string, args: readonly string[]): Promise<unknown> => {
    const all = [String(fence), command, ...args];
    const [answer, mark, result] = (await run(writeScript, keys, all)) as unknown[];
    if (answer !== 'written') throw staleError(`key "${keys[1]}"`, fence, asFence(mark));
    return result ?? null;
  };
  return {
    value,
    fence,
    async write(command, ...args) {
      if (!/^[A-Za-z]+$/.test(command)) throw optionError('command', 'a command name', command);
      return await write(command, args);
    },
    async check() {
      await write('', []);
    },
  };
}

/**
 * Cluster slots follow the part in the first braces: a key without any is put in braces as a whole.
 */
function markKey(key: string, suffix: string): string {
  if (typeof key !== 'string' || key === '') throw optionError('key', 'a Redis key', key);
  const open = key.indexOf('{');
  if (open >= 0 && key.indexOf('}', open) > open + 1) return key + suffix;
  if (open < 0 && !key.includes('}')) return `{${key}}${suffix}`;
  throw optionError('key', 'without stray braces: its mark would be in another slot', key);
}

function asFence(mark: unknown): bigint | undefined {
  return typeof mark === 'string' && mark !== '' ? BigInt(mark) : undefined;
}
