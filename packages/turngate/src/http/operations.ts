/** One declared operation per gate and route, made at the route's first request. */
import { optionError } from '../core/option.ts';
import type { Gate, Operation } from '../gate/gate.ts';
import type { HttpInput } from './exchange.ts';
import type { HttpPolicy } from './options.ts';

interface Declared {
  readonly operation: Operation<never, HttpInput<never>, unknown>;
  readonly terms: string;
}

// Middleware is often made twice for one route (two apps in a test, use() and post()).
const declared = new WeakMap<object, Map<string, Declared>>();

// The response cap is in bytes and applied before; this is only the operation's own upper limit.
const resultCharsMax = 16_777_216;

/** @throws OPTION_INVALID when the route was declared on this gate with other terms */
export function operationFor<Tx, Native>(
  gate: Gate<Tx>,
  name: string,
  policy: HttpPolicy<Native>,
): Operation<Tx, HttpInput<Tx>, unknown> {
  const { waitMs, retentionMs, repeat } = policy;
  const inFlight = policy.inFlight === 'wait' ? ('wait' as const) : ('reject' as const);
  const terms = JSON.stringify([waitMs, retentionMs, repeat, inFlight]);
  const known = declared.get(gate) ?? new Map<string, Declared>();
  declared.set(gate, known);
  const found = known.get(name);
  if (found !== undefined) {
    if (found.terms !== terms) {
      throw optionError('idempotency options', `the same wherever "${name}" is used`, terms);
    }
    return found.operation as unknown as Operation<Tx, HttpInput<Tx>, unknown>;
  }
  const operation = gate.operation<HttpInput<Tx>, unknown>({
    name,
    key: (input) => input.key,
    scope: (input) => input.scope,
    fingerprint: (input) => input.fingerprint,
    repeat,
    inFlight,
    waitMs,
    retentionMs,
    resultCharsMax,
    keySource: `header ${policy.header}`,
    run: (input, context) => input.run(context),
  });
  known.set(name, { operation: operation as unknown as Declared['operation'], terms });
  return operation;
}
