/** Many callers of one key, in as many gates as there would be processes. Numbers: docs/idempotency-experiments.md. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RecordStore } from '../../src/contract/record-store.ts';
import type { Gate } from '../../src/index.ts';
import { door, until } from '../support/clock.ts';

/** A handler's transaction; each target knows its own. */
export type AnyTx = unknown;

/** A store and its effects. */
export interface Target {
  /** As each process opens it. */
  store(): RecordStore<AnyTx>;
  effect(tx: AnyTx, line: string): Promise<void>;
  lines(): Promise<string[]>;
  close(): Promise<void>;
}

type AnyGate = Pick<Gate<AnyTx>, 'operation' | 'close'>;

/** Waiting calls poll 8 to 250 ms apart; a machine that stands still for seconds makes more of them. */
const callsPerGateMax = 60;

/** Registers the races in the suite they are called in. `openGate` opens a gate that remembers nothing. */
export function raceLaws(
  open: () => Promise<Target>,
  openGate: (records: RecordStore<AnyTx>) => AnyGate,
): void {
  let target: Target;
  beforeAll(async () => {
    target = await open();
  });
  afterAll(() => target?.close());

  /** The callers are spread over the gates; the first runs until the store was asked by all gates. */
  async function race(operation: string, callers: number, gates: number) {
    const opened: AnyGate[] = [];
    const asked = new Set<number>();
    const held = door();
    let [runs, storeCalls] = [0, 0];
    const calls = Array.from({ length: gates }, (_, i) => {
      const counted = countedStore(target.store(), () => {
        storeCalls++;
        asked.add(i);
      });
      const gate = openGate(counted);
      opened.push(gate);
      return gate.operation({
        name: operation,
        key: (key: string) => key,
        waitMs: 60_000,
        async run(key: string, { tx }) {
          const value = { run: ++runs };
          await target.effect(tx, `${operation} ${key}`);
          await held.opened;
          return value;
        },
      });
    });
    try {
      const perGate = Array.from({ length: callers / gates });
      const all = Promise.all(calls.flatMap((call) => perGate.map(() => call('hot'))));
      await until('every gate has asked the store', () => asked.size === gates, 60_000);
      held.open();
      const outcomes = await all;
      const effects = (await target.lines()).filter((line) => line.startsWith(`${operation} `));
      return { runs, storeCalls, outcomes, effects };
    } finally {
      held.open();
      await Promise.all(opened.map((gate) => gate.close()));
    }
  }

  for (const [callers, gates] of [
    [50, 50],
    [1_000, 20],
  ] as const) {
    it(`L21 L23: ${callers} callers over ${gates} gates: one run, all others get its result, the store is asked within bounds`, async () => {
      const { runs, storeCalls, outcomes, effects } = await race(`r${callers}`, callers, gates);
      expect(runs).toBe(1);
      expect(effects).toEqual([`r${callers} hot`]);
      expect(outcomes.filter(({ replayed }) => !replayed)).toHaveLength(1);
      expect(new Set(outcomes.map(({ value }) => JSON.stringify(value)))).toEqual(
        new Set(['{"run":1}']),
      );
      expect(storeCalls).toBeLessThanOrEqual(gates * callsPerGateMax);
    });
  }
}

/** Tells of each call before it goes to the store. */
function countedStore(store: RecordStore<AnyTx>, told: () => void): RecordStore<AnyTx> {
  return new Proxy(store, {
    get(inner, name) {
      const value = Reflect.get(inner, name) as unknown;
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        told();
        return (value as (...all: unknown[]) => unknown).apply(inner, args);
      };
    },
  });
}
