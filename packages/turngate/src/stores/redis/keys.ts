/** Names of keys. All processes that share locks must build the same ones: never change them. */
import { optionError } from '../../core/option.ts';

/**
 * Names share 128 hash tags: all keys of a lock lie in one slot, renewals of many locks share a
 * command in a cluster too, and the fence counters, one per tag, stay few however many names there
 * are. A tag comes before the name, so braces in names mean nothing.
 */
const tagCount = 128;

/** The tag of a name: FNV-1a over its UTF-16 units. */
export function tagOf(name: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) {
    hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  }
  // The low bits of FNV are the weakest.
  return ((hash >>> 15) ^ hash) & (tagCount - 1);
}

/** Builds the keys of one store. */
export class LockKeys {
  /** Everything of ours starts with it. */
  private readonly base: string;
  private readonly tagged: readonly string[];

  constructor(base: string) {
    this.base = base;
    this.tagged = Array.from({ length: tagCount }, (_, tag) => `${base}{${tag}}:`);
  }

  /** Lock, queue, waiters, fence. */
  mutex(name: string): [string, string, string, string] {
    const [at, text] = this.at(name);
    return [`${at}lock:${text}`, `${at}queue:${text}`, `${at}waiters:${text}`, `${at}fence`];
  }

  /** Shares, queue, urgent, waiters, fence. */
  shares(name: string): [string, string, string, string, string] {
    const [at, text] = this.at(name);
    return [
      `${at}shares:${text}`,
      `${at}queue:${text}`,
      `${at}urgent:${text}`,
      `${at}waiters:${text}`,
      `${at}fence`,
    ];
  }

  /** The mutex alone. */
  lock(name: string): string {
    const [at, text] = this.at(name);
    return `${at}lock:${text}`;
  }

  /** The lock of a quorum: nothing else belongs to it. */
  quorum(name: string): string {
    const [at, text] = this.at(name);
    return `${at}quorum:${text}`;
  }

  /** The channel on which a process hears of its grants; it has no slot. */
  inbox(id: string): string {
    return `${this.base}inbox:${id}`;
  }

  private at(name: string): [string, string] {
    return [this.tagged[tagOf(name)] as string, odd.test(name) ? exactText(name) : name];
  }
}

const odd = /[%\ud800-\udfff]/;

/**
 * Half a surrogate pair would become the same replacement character as any other on the way to the
 * server, and two names one lock: written as %hex, and % itself as well.
 */
function exactText(name: string): string {
  return name.replace(/[%\p{Cs}]/gu, (unit) => `%${unit.charCodeAt(0).toString(16)};`);
}

/** @throws OPTION_INVALID when a prefix would carry a hash tag of its own */
export function checkPrefix(option: string, prefix: unknown): string {
  if (typeof prefix !== 'string' || /[{}]/.test(prefix)) {
    throw optionError(option, 'a string without braces (the hash tag is ours)', prefix);
  }
  return prefix;
}
