/**
 * A map for keys that come and go by the hundred thousand. V8 rebuilds the table of a `Map` once
 * half of its places are deleted ones, and links each old table to its successor; an old table that
 * has reached the old generation then keeps every later one alive, with all that was in it, until a
 * full collection. Under such a load a `Map` of 64 entries cost more in collections than all else.
 * Here an entry that is taken out points to nothing any more.
 */
import { systemRuntime } from './runtime.ts';

/** Chosen once per process, so that nobody outside knows which keys share a bucket. */
const seed = Math.floor(systemRuntime.random() * 2 ** 32) | 0;
const bucketsMin = 64;

/** One object for all there is to an entry: whatever stays is copied twice before it is old. */
export class Entry<Value> {
  readonly key: string;
  readonly hash: number;
  value: Value;
  next: Entry<Value> | undefined;
  /** Its neighbours where there is an order. */
  older: Entry<Value> | undefined = undefined;
  younger: Entry<Value> | undefined = undefined;

  constructor(key: string, hash: number, value: Value, next: Entry<Value> | undefined) {
    this.key = key;
    this.hash = hash;
    this.value = value;
    this.next = next;
  }
}

type Buckets<Value> = (Entry<Value> | undefined)[];

/** Like a `Map` with text keys, without an order. */
export class ChurnMap<Value> {
  private buckets: Buckets<Value> = emptyBuckets(bucketsMin);
  private count = 0;

  get size(): number {
    return this.count;
  }

  get(key: string): Value | undefined {
    return this.find(key)?.value;
  }

  has(key: string): boolean {
    return this.find(key) !== undefined;
  }

  set(key: string, value: Value): void {
    this.put(key, value);
  }

  delete(key: string): boolean {
    return this.take(key) !== undefined;
  }

  /** Its entry, made where it has none. */
  protected put(key: string, value: Value): Entry<Value> {
    const hash = hashOf(key);
    const known = this.findIn(key, hash);
    if (known !== undefined) {
      known.value = value;
      return known;
    }
    const at = hash & (this.buckets.length - 1);
    const entry = new Entry(key, hash, value, this.buckets[at]);
    this.buckets[at] = entry;
    if (++this.count > this.buckets.length) this.resize(this.buckets.length * 2);
    return entry;
  }

  /** Takes its entry out. */
  protected take(key: string): Entry<Value> | undefined {
    const hash = hashOf(key);
    const at = hash & (this.buckets.length - 1);
    let before: Entry<Value> | undefined;
    let entry = this.buckets[at];
    while (entry !== undefined && (entry.hash !== hash || entry.key !== key)) {
      before = entry;
      entry = entry.next;
    }
    if (entry === undefined) return undefined;
    if (before === undefined) this.buckets[at] = entry.next;
    else before.next = entry.next;
    entry.next = undefined;
    this.count--;
    const { length } = this.buckets;
    if (length > bucketsMin && this.count < length / 8) this.resize(length / 2);
    return entry;
  }

  /** What is in it now; it may change while they are looked at. */
  entries(): [key: string, value: Value][] {
    const found: [string, Value][] = [];
    for (const first of this.buckets) {
      for (let entry = first; entry !== undefined; entry = entry.next) {
        found.push([entry.key, entry.value]);
      }
    }
    return found;
  }

  protected find(key: string): Entry<Value> | undefined {
    return this.findIn(key, hashOf(key));
  }

  private findIn(key: string, hash: number): Entry<Value> | undefined {
    let entry = this.buckets[hash & (this.buckets.length - 1)];
    while (entry !== undefined && (entry.hash !== hash || entry.key !== key)) entry = entry.next;
    return entry;
  }

  private resize(length: number): void {
    const buckets = emptyBuckets<Value>(length);
    for (const first of this.buckets) {
      let entry = first;
      while (entry !== undefined) {
        const { next } = entry;
        const at = entry.hash & (length - 1);
        entry.next = buckets[at];
        buckets[at] = entry;
        entry = next;
      }
    }
    this.buckets = buckets;
  }
}

function emptyBuckets<Value>(length: number): Buckets<Value> {
  return new Array<Entry<Value> | undefined>(length).fill(undefined);
}

/** FNV-1a over the UTF-16 units; the last steps spread what the low bits lack. */
function hashOf(key: string): number {
  let hash = seed;
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  hash ^= hash >>> 16;
  return hash ^ (hash >>> 7);
}
