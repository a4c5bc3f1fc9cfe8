/** Header names a browser must be allowed to send and to read. */

/** For Access-Control-Allow-Headers. */
export const corsAllowHeaders: readonly string[] = ['Idempotency-Key'];

/** For Access-Control-Expose-Headers. */
export const corsExposeHeaders: readonly string[] = [
  'Idempotent-Replayed',
  'Idempotency-First-Processed-At',
  'Idempotency-Outcome',
  'Retry-After',
];
