/**
 * Canonical JSON after RFC 8785 (JCS): members sorted by UTF-16 code units, numbers as ECMAScript
 * writes them, no white space. Two spellings of one value give one text; two values never do.
 *
 * Refused rather than guessed, because each of these has let two payloads share a digest: integers
 * beyond 2^53 - 1 (2^53 and 2^53 + 1 parse equal), NaN and Infinity, lone surrogates, cycles,
 * functions, symbols and class instances. bigint, Date and bytes are written in a tagged form that
 * no JSON value can spell. `undefined` members are left out, as JSON leaves them out.
 */
import { TurngateError } from './errors.ts';

const depthMax = 100;

/**
 * Writes a value as canonical JSON.
 *
 * @throws OPTION_INVALID naming the path of the part that has no canonical form
 */
export function canonicalJson(value: unknown): string {
  const text = write(value, '$', 0);
  if (text === undefined) throw refusal('$', 'undefined is not JSON');
  return text;
}

function write(value: unknown, path: string, depth: number): string | undefined {
  if (depth > depthMax) throw refusal(path, `nested deeper than ${depthMax}, or a cycle`);
  switch (typeof value) {
    case 'undefined':
      return undefined;
    case 'string':
      return writeString(value, path);
    case 'number':
      return writeNumber(value, path);
    case 'boolean':
      return value ? 'true' : 'false';
    case 'bigint':
      return `#int(${value})`;
    case 'object':
      return value === null ? 'null' : writeObject(value, path, depth);
    default:
      throw refusal(path, `a ${typeof value} has no JSON form`);
  }
}

function writeString(value: string, path: string): string {
  if (!value.isWellFormed()) throw refusal(path, 'a lone surrogate is not I-JSON');
  return JSON.stringify(value);
}

function writeNumber(value: number, path: string): string {
  if (!Number.isFinite(value)) throw refusal(path, `${value} is not a JSON number`);
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
    throw refusal(path, 'an integer beyond 2^53 - 1 may already have lost digits; use a string');
  }
  return JSON.stringify(value); // ECMAScript number-to-string is RFC 8785's; -0 becomes 0.
}

function writeObject(value: object, path: string, depth: number): string {
  if (Array.isArray(value)) {
    // Array.from, because map() would leave the holes of a sparse array out.
    const items = Array.from(value, (item, i) => write(item, `${path}[${i}]`, depth + 1) ?? 'null');
    return `[${items.join(',')}]`;
  }
  if (value instanceof Date) {
    if (Number.isNaN(value.getTime())) throw refusal(path, 'an invalid Date');
    return `#date(${value.toISOString()})`;
  }
  if (value instanceof Uint8Array) return `#bytes(${Buffer.from(value).toString('base64url')})`;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    throw refusal(path, 'only plain objects and arrays have a canonical form');
  }
  return writeMembers(value, path, depth);
}

function writeMembers(value: object, path: string, depth: number): string {
  const members: string[] = [];
  // Default sort compares UTF-16 code units, which is RFC 8785's order ("10" before "9").
  // Object.entries reads own members only and never rebuilds the object, so "__proto__" counts.
  for (const name of Object.keys(value).sort()) {
    const member = (value as Record<string, unknown>)[name];
    const text = write(member, `${path}.${name}`, depth + 1);
    if (text !== undefined) members.push(`${writeString(name, path)}:${text}`);
  }
  return `{${members.join(',')}}`;
}

function refusal(path: string, why: string): TurngateError {
  return new TurngateError('OPTION_INVALID', `no canonical form at ${path}: ${why}`);
}
