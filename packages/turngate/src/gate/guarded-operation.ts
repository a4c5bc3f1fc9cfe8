/** An operation as the gate declares it: with a lock around the work where there is one. */
import type { OperationDeclaration, OperationPolicy } from '../idempotency/declaration.ts';
import type { CallOptions } from '../idempotency/operation.ts';
import type { Outcome } from '../idempotency/outcome.ts';
import type { LockOptions } from '../lock/options.ts';

/** An operation's declaration with the part only the gate understands. */
export interface GuardedDeclaration<Tx, Input, Value>
  extends OperationDeclaration<Tx, Input, Value> {
  /**
   * The lock the work runs under: only where *different* requests compete. Repeats of one request
   * need none. Not used by `within`, whose commit is not ours: lock around your transaction there.
   */
  readonly lock?: (input: Input) => string;
  /** Lease, wait and renewal of that lock. */
  readonly lockOptions?: Omit<LockOptions, 'signal' | 'onReentry'>;
}

/** A declared operation: call it, or run it inside a transaction you own. */
export interface Operation<Tx, Input, Value> {
  /**
   * Does the work once per key; every repeat gets the first result.
   *
   * Not promised: effects outside `tx`. An email sent by the handler can be sent again after a
   * rollback.
   */
  (input: Input, options?: CallOptions): Promise<Outcome<Value>>;
  /**
   * The same inside your open transaction: claim, effect and result commit or roll back with it.
   * Make it the first thing the transaction does, at READ COMMITTED. While another transaction works
   * on the key, it waits on *your* connection, at most `waitMs`.
   */
  within(tx: Tx, input: Input): Promise<Outcome<Value>>;
  /** The declaration as checked, for documentation and metrics. */
  readonly policy: OperationPolicy & { readonly locked: boolean };
}
