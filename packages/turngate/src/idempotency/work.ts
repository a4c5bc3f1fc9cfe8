/** The handler as database work: context in, encoded result or refusal out. */
import type { Work, WorkResult } from '../contract/record-store.ts';
import { encodeResult } from '../core/codec.ts';
import { TurngateError } from '../core/errors.ts';
import { recordIdText } from '../core/record-id.ts';
import { ownSignal } from '../runtime/abort.ts';
import {
  isRefusal,
  type OperationContext,
  type OperationDeclaration,
  type OperationPolicy,
  type Request,
} from './declaration.ts';

/** What a lock gives the work that runs under it. */
export interface Guard {
  readonly signal: AbortSignal;
  readonly fence: bigint;
  isHeld(): boolean;
  release(): Promise<unknown>;
}

/** What one attempt runs with. */
export interface WorkSetting<Tx, Input, Value> {
  readonly declaration: OperationDeclaration<Tx, Input, Value>;
  readonly policy: OperationPolicy;
  readonly request: Request;
  readonly input: Input;
  readonly guard: Guard | undefined;
  readonly closing: AbortSignal;
}

/** Makes the work of one attempt. */
export function workOf<Tx, Input, Value>(setting: WorkSetting<Tx, Input, Value>): Work<Tx> {
  const { declaration, policy, request, input, guard } = setting;
  return async (tx) => {
    let value: Value;
    const context = new Context(tx, setting);
    const leave = enter(tx, request);
    try {
      value = await declaration.run(input, context);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      return encodeChecked(policy, 'refused', error.refusal);
    } finally {
      leave?.();
      context.end();
    }
    // A lock that is known to be lost is not committed under; a retry takes it anew.
    if (guard !== undefined && !guard.isHeld()) {
      const message = `${policy.name}: the lock was lost before commit; the work was rolled back`;
      throw new TurngateError('LOCK_LOST', message, { outcome: 'not-applied' });
    }
    return encodeChecked(policy, 'done', value);
  };
}

/**
 * Keys being worked on, by transaction. Not by AsyncLocalStorage: on Node 20 a context that is set
 * slows down every promise and write inside it, and doubled the process time of a first call.
 */
const workedOn = new WeakMap<object, Set<string>>();

/**
 * An operation that runs `within` its own transaction with its own key would never end. Returns what
 * ends the work on the key.
 */
function enter(tx: unknown, request: Request): (() => void) | undefined {
  // A store without transactions has none in which this could happen.
  if (typeof tx !== 'object' || tx === null) return undefined;
  const key = recordIdText(request.id);
  const keys = workedOn.get(tx) ?? new Set();
  if (keys.has(key)) {
    const message = `${request.id.operation} was called from its own handler with its own key`;
    throw new TurngateError('OPERATION_NESTED', message);
  }
  workedOn.set(tx, keys.add(key));
  return () => keys.delete(key);
}

/** Encoded before commit: what cannot be stored rolls the work back instead of losing its result. */
function encodeChecked(
  policy: OperationPolicy,
  state: WorkResult['state'],
  value: unknown,
): WorkResult {
  const result = encodeResult(value);
  if (result.length > policy.resultCharsMax) {
    const message = `${policy.name}: result has ${result.length} characters, resultCharsMax is ${policy.resultCharsMax}`;
    throw new TurngateError('RESULT_INVALID', message);
  }
  return { state, result };
}

type ContextSource = Pick<WorkSetting<unknown, unknown, unknown>, 'guard' | 'closing' | 'request'>;

class Context<Tx> implements OperationContext<Tx> {
  readonly tx: Tx;
  private readonly setting: ContextSource;
  private own: ReturnType<typeof ownSignal> | undefined;

  constructor(tx: Tx, setting: ContextSource) {
    this.tx = tx;
    this.setting = setting;
  }

  get signal(): AbortSignal {
    const { guard, closing } = this.setting;
    // Not the gate's: what handlers leave on it would pile up for as long as the gate lives.
    this.own ??= guard === undefined ? ownSignal(closing) : ownSignal(guard.signal, closing);
    return this.own.signal;
  }

  get fence(): bigint | undefined {
    return this.setting.guard?.fence;
  }

  get scope(): string {
    return this.setting.request.id.scope;
  }

  get key(): string {
    return this.setting.request.id.key;
  }

  end(): void {
    this.own?.forget();
  }
}
