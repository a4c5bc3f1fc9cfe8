/** Looks at the first keys of an operation for what is no key. */
import { adviseKey, type KeyAdvice } from '../core/key-advice.ts';
import { emit, listened } from '../runtime/events.ts';
import type { Request } from './declaration.ts';

const looksMax = 32;
const hitsToWarn = 3;

/** Looks at the first keys of one operation while somebody listens, and tells once. */
export class KeyWatch {
  private looks = 0;
  private last = '';
  private readonly hits = new Map<KeyAdvice['kind'], number>();

  /** Next to nothing once the first keys have been seen, or while nobody listens. */
  look({ id }: Request): void {
    if (this.looks >= looksMax || !listened('idempotency')) return;
    if (id.key === this.last) return;
    this.last = id.key;
    this.looks++;
    const advice = adviseKey(id.key, id);
    if (advice === undefined) return;
    const hits = (this.hits.get(advice.kind) ?? 0) + 1;
    this.hits.set(advice.kind, hits);
    // One key may look like anything; several in a row are a habit.
    if (hits < hitsToWarn) return;
    this.looks = looksMax;
    emit('idempotency', { ...id, type: 'key-advice', advice: advice.reason });
  }
}
