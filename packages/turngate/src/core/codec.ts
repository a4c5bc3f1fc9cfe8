/**
 * Results as text and back, so that what the first caller gets equals what a replay gives: the
 * first caller, too, receives the value after a round trip.
 *
 * Kept: undefined, null, booleans, strings, numbers incl. NaN, the infinities and -0, bigint, Date,
 * Uint8Array (a Buffer comes back as one), Map, Set, arrays and plain objects of these. Refused with
 * the path: functions, symbols, class instances (their type would be lost), cycles.
 */
import { TurngateError } from './errors.ts';

const version = '1';
const depthMax = 100;
const tag = '$';

type Json = string | number | boolean | null | Json[] | { [name: string]: Json };

/** @throws RESULT_INVALID naming the path of the part that cannot be stored */
export function encodeResult(value: unknown): string {
  return version + JSON.stringify(pack(value, '$', 0));
}

/** @throws RECORD_UNREADABLE when the text is from a newer codec or damaged */
export function decodeResult(text: string): unknown {
  if (text[0] !== version) {
    throw new TurngateError('RECORD_UNREADABLE', `stored result has unknown codec ${text[0]}`);
  }
  try {
    const json = JSON.parse(text.slice(1)) as Json;
    // Without a member "$" there is no tag, and nothing to walk through.
    return text.includes(`"${tag}"`) ? unpack(json) : json;
  } catch (cause) {
    throw new TurngateError('RECORD_UNREADABLE', 'stored result is damaged', { cause });
  }
}

function pack(value: unknown, path: string, depth: number): Json {
  if (depth > depthMax) throw refusal(path, `nested deeper than ${depthMax}, or a cycle`);
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value;
    case 'number':
      return Number.isFinite(value) && !Object.is(value, -0)
        ? value
        : tagged('number', spell(value));
    case 'undefined':
      return tagged('undefined', null);
    case 'bigint':
      return tagged('bigint', value.toString());
    case 'object':
      return value === null ? null : packObject(value, path, depth);
    default:
      throw refusal(path, `a ${typeof value} cannot be stored`);
  }
}

function packObject(value: object, path: string, depth: number): Json {
  const packAll = (items: readonly unknown[]): Json[] =>
    items.map((item, i) => pack(item, `${path}[${i}]`, depth + 1));
  if (Array.isArray(value)) return packAll(Array.from(value));
  if (value instanceof Date) {
    const timeMs = value.getTime();
    return tagged('date', Number.isNaN(timeMs) ? null : timeMs);
  }
  if (value instanceof Uint8Array) return tagged('bytes', Buffer.from(value).toString('base64'));
  if (value instanceof Map) return tagged('map', packAll([...value].flat()));
  if (value instanceof Set) return tagged('set', packAll([...value]));
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    throw refusal(path, `an instance of ${value.constructor?.name ?? 'a class'} loses its type`);
  }
  return packMembers(value, path, depth);
}

function packMembers(value: object, path: string, depth: number): Json {
  const members: { [name: string]: Json } = {};
  for (const [name, member] of Object.entries(value)) {
    // defineProperty, because assigning to "__proto__" would set the prototype instead.
    define(members, name, pack(member, `${path}.${name}`, depth + 1));
  }
  return Object.hasOwn(members, tag) ? tagged('object', members) : members;
}

function unpack(json: Json): unknown {
  if (typeof json !== 'object' || json === null) return json;
  if (Array.isArray(json)) return json.map(unpack);
  if (Object.hasOwn(json, tag)) return untag(json[tag] as string, json['v'] as Json);
  return unpackMembers(json);
}

function unpackMembers(json: { [name: string]: Json }): object {
  const members = {};
  for (const [name, member] of Object.entries(json)) define(members, name, unpack(member));
  return members;
}

function untag(kind: string, json: Json): unknown {
  switch (kind) {
    case 'undefined':
      return undefined;
    case 'number':
      return json === '-0' ? -0 : Number(json);
    case 'bigint':
      return BigInt(json as string);
    case 'date':
      return new Date(json === null ? Number.NaN : (json as number));
    case 'bytes':
      return new Uint8Array(Buffer.from(json as string, 'base64'));
    case 'set':
      return new Set((json as Json[]).map(unpack));
    case 'map':
      return new Map(pairs((json as Json[]).map(unpack)));
    case 'object':
      return unpackMembers(json as { [name: string]: Json });
    default:
      throw new TypeError(`unknown tag ${kind}`);
  }
}

function pairs(flat: readonly unknown[]): [unknown, unknown][] {
  const out: [unknown, unknown][] = [];
  for (let i = 0; i < flat.length; i += 2) out.push([flat[i], flat[i + 1]]);
  return out;
}

function tagged(kind: string, v: Json): Json {
  return { [tag]: kind, v };
}

function spell(value: number): string {
  return Object.is(value, -0) ? '-0' : String(value);
}

function define(target: object, name: string, value: unknown): void {
  if (name === '__proto__') {
    Object.defineProperty(target, name, {
      value,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  } else {
    (target as Record<string, unknown>)[name] = value;
  }
}

function refusal(path: string, why: string): TurngateError {
  return new TurngateError('RESULT_INVALID', `result at ${path}: ${why}`);
}
