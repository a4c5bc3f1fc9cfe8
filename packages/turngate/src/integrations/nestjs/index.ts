/**
 * Idempotency for NestJS on Express and on Fastify. Nothing of Nest, RxJS or reflect-metadata is
 * imported: a dynamic module is a plain object, an interceptor a plain class, and the decorator keeps
 * its options in a WeakMap by handler. The one thing taken from Nest is the text `APP_INTERCEPTOR`.
 */
export type { HttpContext } from '../../http/layer.ts';
export { keepRawBody } from '../../http/node-request.ts';
export type { HttpOptions } from '../../http/options.ts';
export { Idempotent, type IdempotentDecorator } from './decorator.ts';
export {
  IdempotencyInterceptor,
  type NestContext,
  type NestIdempotencyOptions,
  type NestNext,
  type NestRequest,
} from './interceptor.ts';
export {
  type NestAsyncOptions,
  type NestModule,
  TURNGATE_GATE,
  TurngateModule,
} from './module.ts';
export { turngateOf } from './turngate-of.ts';
