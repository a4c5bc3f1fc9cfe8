/** What the lock scripts reply, in the words of the contract. */
import type { LockAnswer, LockGrant } from '../../contract/lock-store.ts';

const answers: readonly LockAnswer[] = ['ours', 'expired', 'taken'];

/** The answer behind a digit. */
export function answerOf(digit: unknown): LockAnswer {
  return answers[Number(digit)] as LockAnswer;
}

/** A fence is above zero; zero and below is what is left of somebody's lease. */
export function toGrant(reply: unknown): LockGrant {
  const number = Number(reply);
  if (number > 0) return { kind: 'granted', fence: BigInt(number) };
  return { kind: 'held', remainingMs: -number };
}
