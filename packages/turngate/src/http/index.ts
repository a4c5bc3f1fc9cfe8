/** The Idempotency-Key protocol over plain values, for any framework. */
export { type OutcomeWord, outcomeHeader } from './answers.ts';
export {
  type AckChannel,
  type AcknowledgeOptions,
  acknowledge,
  callbackAck,
} from './callback-ack.ts';
export { corsAllowHeaders, corsExposeHeaders } from './cors.ts';
export { parseIdempotencyKey } from './idempotency-key.ts';
export type { BodyView, FingerprintRule } from './identity.ts';
export {
  createHttpLayer,
  type HandleOptions,
  type HttpAnswer,
  type HttpContext,
  type HttpLayer,
} from './layer.ts';
export type {
  HandlerResponse,
  HeaderLines,
  HttpRequest,
  HttpResponse,
  RequestBody,
} from './message.ts';
export { type IdempotencyStatement, idempotencyStatement } from './openapi.ts';
export type { HttpOptions, HttpPolicy } from './options.ts';
export { type Problem, type ProblemParts, problem, problemOf } from './problem.ts';
export { replayHeaders } from './replay-headers.ts';
export { type AesGcmOptions, aesGcmCodec, type ResponseCodec } from './response-codec.ts';
export { storedByDefault, storedHeadersDefault } from './response-policy.ts';
