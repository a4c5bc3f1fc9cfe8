/** A participant in external mode: each verb is a call outside, behind the external barrier. */
import type { BranchOp } from './branch.ts';
import type { ExternalBarrier } from './external-barrier.ts';
import type { ExternalContext } from './external-call.ts';
import { asParticipant } from './participant.ts';
import type { BranchContext, Participant } from './tcc.ts';

/** What a participant does outside its database. */
export interface ExternalHandlers<Payload> {
  /** May `throw refuse(…)`, but only when the provider said that nothing happened. */
  readonly try: (payload: Payload, context: ExternalContext) => Promise<unknown>;
  readonly confirm: (payload: Payload, context: ExternalContext) => Promise<unknown>;
  /** Must also succeed when the provider knows nothing of `tryKey`. */
  readonly cancel: (payload: Payload, context: ExternalContext) => Promise<unknown>;
}

/** A participant whose effect is outside its database, with the same verbs as a local one. */
export function externalParticipant<Payload>(
  barrier: ExternalBarrier,
  handlers: ExternalHandlers<Payload>,
): Participant<Payload> {
  return asParticipant<Payload>(
    (op: BranchOp) =>
      async (payload: Payload, { gid, branch, signal }: BranchContext): Promise<unknown> => {
        const own = { gid, branch, op, signal };
        const call = op === 'try' ? { ...own, payload } : own;
        const result = await barrier.call(call, (context) => handlers[op](payload, context));
        return result.value;
      },
  );
}
