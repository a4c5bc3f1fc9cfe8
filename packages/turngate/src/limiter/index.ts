/** Rate limits over several processes. */
export { memoryTokenBuckets } from './memory-buckets.ts';
export { type RedisBucketsOptions, redisTokenBuckets } from './redis-buckets.ts';
export type { TakeAnswer, TakeOptions, TokenBuckets } from './token-bucket.ts';
