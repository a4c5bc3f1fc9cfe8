/**
 * A transaction handle that stops working after a deadlock. The server has then rolled the whole
 * transaction back, but the session lives on: what a handler that swallowed the error sends next
 * would commit by itself, statement by statement, and survive the caller's ROLLBACK.
 */
import { TurngateError } from '../../core/errors.ts';
import { isConflict } from './mysql-error.ts';

/** A handle under watch. */
export interface Poisonable<Tx> {
  readonly tx: Tx;
  /** The deadlock that ended its transaction. */
  poisonedBy(): unknown;
  /** The work is over: the handle is the plain one again. */
  end(): void;
}

/** A handle nobody watches. */
export function unwatched<Tx>(tx: Tx): Poisonable<Tx> {
  return { tx, poisonedBy: () => undefined, end() {} };
}

/** A nested operation gets the handle of the outer one, so that one deadlock ends both. */
const known = new WeakMap<object, Poisonable<unknown>>();
const watched = new Set<PropertyKey>(['query', 'execute']);

/** Wraps the statements of a mysql2 handle, of either style. */
export function poisonable<Tx>(tx: Tx): Poisonable<Tx> {
  const outer = known.get(tx as object);
  if (outer !== undefined) return { ...outer, end() {} } as Poisonable<Tx>;
  const state: { poisonedBy: unknown; ended: boolean } = { poisonedBy: undefined, ended: false };
  const note = (error: unknown): void => {
    if (isConflict(error)) state.poisonedBy ??= error;
  };
  const handler: ProxyHandler<object> = {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      if (!watched.has(name)) return member.bind(target);
      return (...given: unknown[]) => {
        if (!state.ended && state.poisonedBy !== undefined) throw refusal(state.poisonedBy);
        const result: unknown = member.apply(target, watchCallback(given, note));
        if (result instanceof Promise) result.catch(note);
        return result;
      };
    },
  };
  const made: Poisonable<Tx> = {
    tx: new Proxy(tx as object, handler) as Tx,
    poisonedBy: () => state.poisonedBy,
    end() {
      state.ended = true;
    },
  };
  known.set(made.tx as object, made);
  return made;
}

function watchCallback(given: unknown[], note: (error: unknown) => void): unknown[] {
  const callback = given.at(-1);
  if (typeof callback !== 'function') return given;
  const watching = (error: unknown, ...rest: unknown[]): unknown => {
    note(error);
    return callback(error, ...rest);
  };
  return [...given.slice(0, -1), watching];
}

function refusal(cause: unknown): TurngateError {
  const message = 'a deadlock has ended this transaction; nothing more is sent on it';
  return new TurngateError('TRANSACTION_CONFLICT', message, { cause });
}
