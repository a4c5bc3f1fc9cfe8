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
export { adviseKey, type KeyAdvice } from './core/key-advice.ts';
export { providerKeyOf } from './core/provider-key.ts';
export { keyDigest } from './core/record-id.ts';
export { parseStrictJson } from './core/strict-json.ts';
export { isUniqueViolation } from './core/unique-violation.ts';
export type { FlowDeclaration, Transition } from './flow/definition.ts';
export { defineFlow, type Firing, type Flow, type FlowResult } from './flow/flow.ts';
export {
  createGate,
  type Gate,
  type GateOptions,
  type GuardedDeclaration,
  type Operation,
  type UnfencedGate,
} from './gate/gate.ts';
export type { StagedOperation } from './gate/staged-gate.ts';
export type {
  OperationContext,
  OperationDeclaration,
  OperationPolicy,
} from './idempotency/declaration.ts';
export type { CallOptions } from './idempotency/operation.ts';
export type { Outcome } from './idempotency/outcome.ts';
export type {
  SingleWriteDeclaration,
  SingleWriteOperation,
} from './idempotency/single-write.ts';
export type { RecoverOptions, Recovery } from './idempotency/staged/recovery.ts';
export type {
  StagedContext,
  StagedDeclaration,
  StagedPolicy,
  StepContext,
  StepFunction,
  StepOptions,
  StepResolution,
  TxStepOptions,
  UnknownStep,
} from './idempotency/staged/staged-declaration.ts';
export type { LockStatistics } from './lock/advice.ts';
export type { AdoptOptions } from './lock/give-away.ts';
export type { ReleaseResult } from './lock/hold.ts';
export type { LockGroup, UnfencedLockGroup } from './lock/lock-group.ts';
export type { LockHandle, UnfencedLockHandle } from './lock/lock-handle.ts';
export type { LockHandOver, LockOptions, LockPermits, OnReentry } from './lock/options.ts';
export type { Election, ElectionOptions, Lead } from './lock/uses/election.ts';
export type { HeldLock, LockSource } from './lock/uses/lock-source.ts';
export {
  type Segment,
  type SegmentedLock,
  type SegmentedOptions,
  segmented,
} from './lock/uses/segmented.ts';
export { type SingleFlight, singleFlight } from './lock/uses/single-flight.ts';
export type {
  CachedLoad,
  FlightCache,
  LoadContext,
  SingleFlightOptions,
} from './lock/uses/single-flight-options.ts';
export {
  type EventFamilies,
  type FlowEvent,
  type IdempotencyEvent,
  type LockEvent,
  type LockMeasure,
  onEvent,
  type StagedEvent,
} from './runtime/events.ts';
