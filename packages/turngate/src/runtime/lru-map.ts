/** A map in the order of use: what was put in or used last is youngest. */
import { ChurnMap, type Entry } from './churn-map.ts';

/** Keeps values by key and knows which one was not used for longest. */
export class LruMap<Value> extends ChurnMap<Value> {
  private first: Entry<Value> | undefined;
  private last: Entry<Value> | undefined;

  /** The value, which is now the youngest; `get` looks without using. */
  use(key: string): Value | undefined {
    const entry = this.find(key);
    if (entry === undefined) return undefined;
    this.makeYoungest(entry);
    return entry.value;
  }

  /** Puts a value in; it is now the youngest. */
  override set(key: string, value: Value): void {
    this.makeYoungest(this.put(key, value));
  }

  override delete(key: string): boolean {
    const entry = this.take(key);
    if (entry === undefined) return false;
    this.unlink(entry);
    return true;
  }

  oldest(): readonly [key: string, value: Value] | undefined {
    return this.first && [this.first.key, this.first.value];
  }

  /** All of them, oldest first. */
  override entries(): [key: string, value: Value][] {
    const found: [string, Value][] = [];
    for (let entry = this.first; entry !== undefined; entry = entry.younger) {
      found.push([entry.key, entry.value]);
    }
    return found;
  }

  private makeYoungest(entry: Entry<Value>): void {
    if (entry === this.last) return;
    // A new one is in no order yet; of the others only the first has nobody older.
    if (entry.older !== undefined || entry === this.first) this.unlink(entry);
    entry.older = this.last;
    if (this.last === undefined) this.first = entry;
    else this.last.younger = entry;
    this.last = entry;
  }

  /** What is taken out points to nothing any more; see {@link ChurnMap}. */
  private unlink(entry: Entry<Value>): void {
    if (entry.older === undefined) this.first = entry.younger;
    else entry.older.younger = entry.younger;
    if (entry.younger === undefined) this.last = entry.older;
    else entry.younger.older = entry.older;
    entry.older = undefined;
    entry.younger = undefined;
  }
}
