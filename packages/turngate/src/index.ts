/** Locks and idempotency: the public door. Stores and integrations have doors of their own. */
export {
  type ErrorCode,
  type ErrorDetail,
  type ErrorOutcome,
  errorTable,
  isTurngateError,
  type Refusal,
  refuse,
  TurngateError,
} from './core/errors.ts';
export { fingerprintOf } from './core/fingerprint.ts';
export { keyDigest } from './core/record-id.ts';
export { parseStrictJson } from './core/strict-json.ts';
export type { FlowDeclaration, Transition } from './flow/definition.ts';
export { defineFlow, type Firing, type Flow, type FlowResult } from './flow/flow.ts';
export {
  createGate,
  type Gate,
  type GateOptions,
  type GuardedDeclaration,
  type Operation,
} from './gate/gate.ts';
export type {
  OperationContext,
  OperationDeclaration,
  OperationPolicy,
} from './idempotency/declaration.ts';
export type { CallOptions } from './idempotency/operation.ts';
export type { Outcome } from './idempotency/outcome.ts';
export type { LockHandle, ReleaseResult } from './lock/lock-handle.ts';
export type { LockOptions, OnReentry } from './lock/options.ts';
export {
  type EventFamilies,
  type FlowEvent,
  type IdempotencyEvent,
  type LockEvent,
  onEvent,
} from './runtime/events.ts';
