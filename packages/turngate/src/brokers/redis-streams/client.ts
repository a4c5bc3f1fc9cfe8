/** Sending commands through a Redis client handed in by the caller; the client is told by its shape. */
import { optionError } from '../../core/option.ts';

/** An ioredis client. */
export interface IoredisCommands {
  call(command: string, ...args: string[]): Promise<unknown>;
}

/** A node-redis client. */
export interface NodeRedisCommands {
  sendCommand(args: string[]): Promise<unknown>;
}

/** A client that can send commands: ioredis or node-redis. */
export type RedisCommands = IoredisCommands | NodeRedisCommands;

/** One command, answered as the server did. */
export type SendCommand = (...args: string[]) => Promise<unknown>;

/** @throws OPTION_INVALID when the client is neither */
export function commandSender(client: unknown): SendCommand {
  // ioredis has a sendCommand too, of another shape: ask for `call` first.
  const has = (name: string): boolean =>
    typeof (client as Record<string, unknown> | null | undefined)?.[name] === 'function';
  if (has('call')) {
    const io = client as IoredisCommands;
    return (command, ...args) => io.call(command as string, ...args);
  }
  if (has('sendCommand')) {
    const node = client as NodeRedisCommands;
    return (...args) => node.sendCommand(args);
  }
  throw optionError('client', 'an ioredis or node-redis client', client);
}

/** An entry of a stream; `fields` is undefined when it was deleted while somebody held it. */
export interface StreamEntry {
  readonly entryId: string;
  readonly fields: Readonly<Record<string, string>> | undefined;
}

/** Entries of the one stream asked for, from an answer of either protocol version. */
export function entriesOfRead(answer: unknown): readonly StreamEntry[] {
  if (answer === null || answer === undefined) return [];
  if (Array.isArray(answer)) {
    // Protocol 2: a list of pairs. Protocol 3 through ioredis: one flat list of names and entries.
    return entries(Array.isArray(answer[0]) ? answer[0][1] : answer[1]);
  }
  const values = answer instanceof Map ? [...answer.values()] : Object.values(answer);
  return entries(values[0]);
}

/** Entries from XAUTOCLAIM's answer. */
export function entriesOfClaim(answer: unknown): readonly StreamEntry[] {
  return Array.isArray(answer) ? entries(answer[1]) : [];
}

function entries(list: unknown): readonly StreamEntry[] {
  if (!Array.isArray(list)) return [];
  return list
    .filter((entry): entry is unknown[] => Array.isArray(entry))
    .map(([entryId, flat]) => ({ entryId: String(entryId), fields: fieldsOf(flat) }));
}

function fieldsOf(flat: unknown): Record<string, string> | undefined {
  if (!Array.isArray(flat)) return undefined;
  const fields: Record<string, string> = {};
  for (let i = 0; i + 1 < flat.length; i += 2) fields[String(flat[i])] = String(flat[i + 1]);
  return fields;
}
