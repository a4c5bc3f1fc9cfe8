/** The decision table of the external mode, as a table: what an op may do to a branch in each state. */
import type { BranchOp, BranchState } from './branch.ts';

/** States while the call outside is out, or its end is not known: they have a lease. */
export type OutState = 'TRYING' | 'CONFIRMING' | 'CANCELLING';

/** How a branch in external mode stands. */
export type ExternalState = OutState | BranchState;

/** Go on to that state and call outside; or answer without a call. */
export type Decision = OutState | 'replay' | 'not-tried' | 'refused' | 'conflict';

const table: Record<BranchOp, Record<ExternalState, Decision>> = {
  try: {
    TRYING: 'TRYING',
    TRIED: 'replay',
    CONFIRMING: 'refused',
    CONFIRMED: 'replay',
    CANCELLING: 'refused',
    CANCELLED: 'refused',
    SUSPENDED: 'refused',
  },
  confirm: {
    TRYING: 'not-tried',
    TRIED: 'CONFIRMING',
    CONFIRMING: 'CONFIRMING',
    CONFIRMED: 'replay',
    CANCELLING: 'conflict',
    CANCELLED: 'conflict',
    SUSPENDED: 'conflict',
  },
  cancel: {
    TRYING: 'CANCELLING',
    TRIED: 'CANCELLING',
    CONFIRMING: 'conflict',
    CONFIRMED: 'conflict',
    CANCELLING: 'CANCELLING',
    CANCELLED: 'replay',
    SUSPENDED: 'replay',
  },
};

export function decide(op: BranchOp, state: ExternalState): Decision {
  return table[op][state];
}

/** Where a call that is out leads to when it succeeds. */
export const endOf = {
  TRYING: 'TRIED',
  CONFIRMING: 'CONFIRMED',
  CANCELLING: 'CANCELLED',
} as const satisfies Record<OutState, BranchState>;

/** Must the lease of whoever is in this state be over before another goes on? */
export function isOut(state: ExternalState): state is OutState {
  return state in endOf;
}
