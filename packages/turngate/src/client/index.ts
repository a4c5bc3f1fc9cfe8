/** For callers of an idempotent API. Runs in browsers too: nothing of `node:` is imported. */
export {
  createIdempotentFetch,
  type IdempotentFetch,
  type IdempotentFetchOptions,
  type Intent,
} from './idempotent-fetch.ts';
export type { IntentOutcome, IntentResult } from './outcome.ts';
