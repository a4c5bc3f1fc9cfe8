/**
 * Finished records remembered in this process, so that a repeat costs no trip. Only committed,
 * immutable records enter; none outlives its own expiry; the size is bounded in characters.
 * Switched off, the guarantees are the same.
 */
import type { StoredRecord } from '../contract/record-store.ts';
import { LruMap } from '../runtime/lru-map.ts';
import type { Runtime } from '../runtime/runtime.ts';

const overheadChars = 200; // Map entry, strings' headers and the object, roughly.

/** What a repeat is answered from. */
export type Remembered = Pick<
  StoredRecord,
  'state' | 'fingerprint' | 'result' | 'firstProcessedAtMs'
>;

/** In one object, with a whole number for the time: that needs no object of its own. */
interface Kept extends Remembered {
  readonly dropAtMonoMs: number;
}

/** A bounded least-recently-used memory of finished records. */
export class OutcomeMemory {
  private readonly entries = new LruMap<Kept>();
  private readonly charsMax: number;
  private readonly runtime: Runtime;
  private chars = 0;

  constructor(charsMax: number, runtime: Runtime) {
    this.charsMax = charsMax;
    this.runtime = runtime;
  }

  get(key: string): Remembered | undefined {
    const kept = this.entries.use(key);
    if (kept === undefined || this.runtime.monoMs() < kept.dropAtMonoMs) return kept;
    this.drop(key, kept);
    return undefined;
  }

  add(key: string, record: StoredRecord): void {
    const size = cost(key, record);
    if (size > this.charsMax / 8) return; // One giant must not push out everybody else.
    const old = this.entries.get(key);
    if (old !== undefined) this.drop(key, old);
    // By the local clock from now on: at most as long as the store will keep it from its own now.
    // Half of the retention, so that a wall-clock difference between hosts cannot outlive it.
    const keepMs = (record.expiresAtMs - record.firstProcessedAtMs) / 2;
    const ageMs = Math.max(0, this.runtime.wallMs() - record.firstProcessedAtMs);
    if (ageMs >= keepMs) return;
    const { state, fingerprint, result, firstProcessedAtMs } = record;
    const dropAtMonoMs = Math.floor(this.runtime.monoMs() + keepMs - ageMs);
    this.entries.set(key, { state, fingerprint, result, firstProcessedAtMs, dropAtMonoMs });
    this.chars += size;
    while (this.chars > this.charsMax) {
      const [oldest, kept] = this.entries.oldest() as readonly [string, Kept];
      this.drop(oldest, kept);
    }
  }

  private drop(key: string, kept: Kept): void {
    if (this.entries.delete(key)) this.chars -= cost(key, kept);
  }
}

function cost(key: string, { result }: Remembered): number {
  return key.length + result.length + overheadChars;
}
