/** Try and release of a mutex: with a command of their own, or with others in one. */
import type { LockAnswer, LockAttempt, LockGrant } from '../../contract/lock-store.ts';
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
      const args = ['', String(4 * asks.length)];
      const asked: (string | string[])[] = [];
      let last: Try | undefined;
      for (const ask of asks) {
        const { attempt, address } = ask;
        args.push(...keys.mutex(attempt.name));
        if (last === undefined || !sameTerms(last, ask)) asked.push(termsOf(attempt, address));
        asked.push(attempt.owner);
        last = ask;
      }
      args.push(JSON.stringify(asked));
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
      const args = ['', String(4 * attempts.length)];
      for (const { name } of attempts) args.push(...keys.mutex(name));
      args.push(JSON.stringify(attempts.map(({ owner }) => owner)));
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

function sameTerms(one: Try, other: Try): boolean {
  return (
    one.attempt.leaseMs === other.attempt.leaseMs &&
    one.attempt.fences === other.attempt.fences &&
    one.attempt.queueMs === other.attempt.queueMs &&
    one.address === other.address
  );
}
