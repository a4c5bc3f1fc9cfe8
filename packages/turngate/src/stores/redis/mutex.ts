/** Try and release of a mutex: with a command of their own, or with others in one. */
import type { LockAnswer, LockAttempt, LockGrant } from '../../contract/lock-store.ts';
import { askedText } from './asked.ts';
import type { BatchKind } from './batch.ts';
import type { LockKeys } from './keys.ts';
import { answerOf, toGrant } from './replies.ts';
import * as lua from './scripts.generated.ts';

/** A try. */
export interface Try {
  readonly attempt: LockAttempt;
  /** Where its process listens; empty when it does not. */
  readonly address: string;
  /** What becomes of the answer, in the same promise: most processes never wait. */
  readonly onGrant: (grant: LockGrant) => LockGrant | Promise<LockGrant>;
}

/** Takes the lock, or a place in its queue. */
export function tries(keys: LockKeys): BatchKind<Try, LockGrant> {
  return {
    one: lua.tryScript,
    several: lua.trySeveralScript,
    oneArgs({ attempt, address }) {
      const { name, owner } = attempt;
      return ['', '4', ...keys.mutex(name), owner, ...termsOf(attempt, address)];
    },
    severalArgs(asks) {
      const { length } = asks;
      const args = new Array<string>(3 * length + 4);
      let fencesMax = 1;
      asks.forEach(({ attempt: { name, fences = 1 } }, i) => {
        const [lock, queue, , fence] = keys.mutex(name);
        args[i + 2] = fence;
        args[i + 2 + length] = queue;
        args[i + 2 + 2 * length] = lock;
        if (fences > fencesMax) fencesMax = fences;
      });
      args[1] = String(3 * length);
      args[3 * length + 2] = askedText(asks.map(({ attempt }) => attempt));
      args[3 * length + 3] = String(fencesMax);
      return args;
    },
    answerTo: ({ onGrant }, reply) => onGrant(toGrant(reply)),
  };
}

/** Frees the lock, or gives up a place in its queue. */
export function releases(keys: LockKeys): BatchKind<LockAttempt, LockAnswer> {
  return {
    one: lua.releaseScript,
    several: lua.releaseSeveralScript,
    oneArgs: ({ name, owner }) => ['', '4', ...keys.mutex(name), owner],
    severalArgs(attempts) {
      const { length } = attempts;
      const args = new Array<string>(2 * length + 3);
      const owners = attempts.map(({ name, owner }, i) => {
        const [lock, queue] = keys.mutex(name);
        args[i + 2] = queue;
        args[i + 2 + length] = lock;
        return owner;
      });
      args[1] = String(2 * length);
      args[2 * length + 2] = JSON.stringify(owners);
      return args;
    },
    answerTo: (_, reply) => answerOf(reply),
  };
}

/** What a script is told of a wish beside its owner: lease, fences, how long the place lasts, address. */
export function termsOf(
  { leaseMs, fences = 1, queueMs = 0 }: LockAttempt,
  address: string,
): string[] {
  return [String(leaseMs), String(fences), String(queueMs), address];
}
