/** Transactions across services without a server: barrier, TCC, SAGA, guard. */

export { type Barrier, type BarrierOptions, type BranchCall, createBarrier } from './barrier.ts';
export type { BranchName, BranchOp, BranchResult, BranchState } from './branch.ts';
export type { CoordinatedDeclaration } from './coordinated.ts';
export {
  createExternalBarrier,
  type ExternalBarrier,
  type ExternalBarrierOptions,
  type ExternalCall,
} from './external-barrier.ts';
export type { ExternalContext } from './external-call.ts';
export { type ExternalHandlers, externalParticipant } from './external-participant.ts';
export type { RecancelOptions, Recancels, SecondCancel } from './external-recancel.ts';
export { birthOf, gidAt } from './gid.ts';
export { type GuardClaim, readGuard, releaseGuard, takeGuard } from './guard.ts';
export {
  type BranchHandlers,
  type HttpParticipantOptions,
  httpParticipant,
  localParticipant,
  type ParticipantRequest,
  type ParticipantResponse,
  participantEndpoint,
} from './participant.ts';
export {
  type DoContext,
  defineSaga,
  type SagaDeclaration,
  type SagaOutputs,
  type SagaStep,
  sagaUndone,
  type UndoContext,
} from './saga.ts';
export {
  type BranchContext,
  defineTcc,
  type Participant,
  type TccBranch,
  type TccDeclaration,
  type TccOutcome,
  tccCancelled,
} from './tcc.ts';
