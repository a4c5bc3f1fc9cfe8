/** The Idempotency-Key protocol over plain values, for any framework. */
export { parseIdempotencyKey } from './idempotency-key.ts';
export { type IdempotencyStatement, idempotencyStatement } from './openapi.ts';
export { type Problem, type ProblemParts, problem, problemOf } from './problem.ts';
export { replayHeaders } from './replay-headers.ts';
