/**
 * Finished records remembered in this process, so that a repeat costs no trip. Only committed,
 * immutable records enter; none outlives its own expiry; the size is bounded in characters.
 * Switched off, the guarantees are the same.
 */
import type { StoredRecord } from '../contract/record-store.ts';
import { LruMap } from '../runtime/lru-map.ts';
import type { Runtime } from '../runtime/runtime.ts';

const overheadChars = 200; // Map entry, strings' headers and the record object, roughly.

/** A bounded least-recently-used memory of finished records. */
export class OutcomeMemory {
  private readonly entries = new LruMap<{ record: StoredRecord; dropAtMonoMs: number }>();
  private readonly charsMax: number;
  private readonly runtime: Runtime;
  private chars = 0;

  constructor(charsMax: number, runtime: Runtime) {
    this.charsMax = charsMax;
    this.runtime = runtime;
  }

  get(key: string): StoredRecord | undefined {
    const entry = this.entries.use(key);
    if (entry === undefined) return undefined;
    if (this.runtime.monoMs() < entry.dropAtMonoMs) return entry.record;
    this.drop(key, entry.record);
    return undefined;
  }

  add(key: string, record: StoredRecord): void {
    const size = cost(key, record);
    if (size > this.charsMax / 8) return; // One giant must not push out everybody else.
    const old = this.entries.get(key);
    if (old !== undefined) this.drop(key, old.record);
    // By the local clock from now on: at most as long as the store will keep it from its own now.
    // Half of the retention, so that a wall-clock difference between hosts cannot outlive it.
    const keepMs = (record.expiresAtMs - record.firstProcessedAtMs) / 2;
    const ageMs = Math.max(0, this.runtime.wallMs() - record.firstProcessedAtMs);
    if (ageMs >= keepMs) return;
    this.entries.set(key, { record, dropAtMonoMs: this.runtime.monoMs() + keepMs - ageMs });
    this.chars += size;
    while (this.chars > this.charsMax) {
      const [oldest, entry] = this.entries.oldest() as readonly [string, { record: StoredRecord }];
      this.drop(oldest, entry.record);
    }
  }

  private drop(key: string, record: StoredRecord): void {
    if (this.entries.delete(key)) this.chars -= cost(key, record);
  }
}

function cost(key: string, record: StoredRecord): number {
  return key.length + record.result.length + overheadChars;
}
