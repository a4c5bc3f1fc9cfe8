/** What the pieces of one lock client share. */
import type { LockStore } from '../contract/lock-store.ts';
import { TurngateError } from '../core/errors.ts';
import type { DueHeap } from '../runtime/due-heap.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { LockAdvice } from './advice.ts';
import type { Keeper } from './hold.ts';
import type { Renewal } from './renewal.ts';

/** One command of the store; the wait budget is checked on top of it. */
export const callLimitMs = 5_000;

/** Shared by the pieces of one lock client. */
export interface LockParts {
  readonly store: LockStore;
  readonly runtime: Runtime;
  /** Limits of commands under way. Keeps no process alive: the connection does. */
  readonly calls: DueHeap;
  /** Waiting callers and their next tries. Keeps the process alive. */
  readonly waits: DueHeap;
  readonly renewal: Renewal;
  readonly keeper: Keeper;
  readonly advice: LockAdvice;
  readonly nextOwner: () => string;
  /** Does the store keep a queue that an attempt can stand in? */
  readonly queued: boolean;
  /** Does the store number its grants? */
  readonly fenced: boolean;
  /** Can the store reserve fences for hand-over? */
  readonly blocks: boolean;
}

/** The error for a store that failed or did not answer. */
export function storeError(parts: LockParts, what: string, cause?: unknown): TurngateError {
  const message = `lock store "${parts.store.name}" ${what}`;
  return new TurngateError('STORE_UNAVAILABLE', message, cause === undefined ? {} : { cause });
}
