/** What callers get, and how a stored record becomes it. */
import { decodeResult } from '../core/codec.ts';
import { type Refusal, TurngateError } from '../core/errors.ts';
import type { Remembered } from './outcome-memory.ts';

/** The answer of an operation. */
export interface Outcome<Value> {
  /** The handler's result after a codec round trip: equal for the first caller and every repeat. */
  readonly value: Value;
  /** False for the one caller whose attempt did the work. */
  readonly replayed: boolean;
  /** When the first was processed, by the store's clock. */
  readonly firstProcessedAt: Date;
}

/** Decodes a record; a remembered refusal is thrown as REFUSED. */
export function outcomeOf<Value>(record: Remembered, replayed: boolean): Outcome<Value> {
  const firstProcessedAt = new Date(record.firstProcessedAtMs);
  if (record.state === 'refused') {
    const refusal = decodeResult(record.result) as Refusal;
    throw new TurngateError('REFUSED', refusal.message, { refusal, replayed, firstProcessedAt });
  }
  if (record.result === '') {
    const message = 'the work was done, but its result was dropped to save space';
    throw new TurngateError('RESULT_NOT_KEPT', message, { replayed, firstProcessedAt });
  }
  return { value: decodeResult(record.result) as Value, replayed, firstProcessedAt };
}
