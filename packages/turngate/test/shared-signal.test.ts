/** One abort signal for many: Node would call eleven listeners on it a leak, and be right. */
import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createGate } from '../src/index.ts';
import { memory, memoryLocks, memoryStaged } from '../src/stores/memory/index.ts';
import { door, turn, until } from './support/clock.ts';
import { rejection } from './support/errors.ts';

const callers = 50;
const warnings: string[] = [];
const onWarning = ({ name }: Error): void => void warnings.push(name);
beforeEach(() => {
  warnings.length = 0;
  process.on('warning', onWarning);
});
afterEach(async () => {
  await turn(); // A warning is told in a later turn.
  process.off('warning', onWarning);
  expect(warnings).toEqual([]);
});

function open() {
  const records = memory();
  return createGate({
    records,
    locks: memoryLocks(),
    staged: memoryStaged(records),
    memoryCharsMax: 0,
  });
}
const keys = Array.from({ length: callers }, (_, i) => `k${i}`);
const key = (word: string): string => word;

it.each([
  ['of one key', () => 'k0'],
  ['of keys of their own', (i: number) => `k${i}`],
])('50 callers %s share a signal; none is left on it, and it ends them all', async (_, keyAt) => {
  const held = door();
  const gate = open();
  const pay = gate.operation({ name: 'pay', key, run: () => held.opened });
  const { signal, abort } = controlled();
  const calls = keys.map((_, i) => pay(keyAt(i), { signal }));
  await turn();
  expect(getEventListeners(signal, 'abort').length).toBe(1);
  abort();
  await Promise.all(calls.map((call) => rejection(call, 'ABORTED')));
  held.open();
  const late = controlled();
  await Promise.all(keys.map((word) => pay(word, { signal: late.signal })));
  expect(getEventListeners(late.signal, 'abort')).toEqual([]);
});

it.each([
  ['without a lock', {}],
  ['under a lock', { lock: (word: string) => word }],
])(
  '50 handlers %s listen to the end of their gate, each on a signal of its own',
  async (_, more) => {
    const gate = open();
    const signals = new Set<AbortSignal>();
    const listen = gate.operation({
      name: 'listen',
      key,
      ...more,
      async run(_: string, { signal }) {
        signals.add(signal);
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      },
    });
    const calls = keys.map((word) => listen(word));
    await until('all run', () => signals.size === callers);
    await gate.close();
    await Promise.all(calls);
  },
);

it('50 staged operations at once listen to the end of their gate', async () => {
  const held = door();
  const gate = open();
  let running = 0;
  const ship = gate.stagedOperation({
    name: 'ship',
    key,
    async run() {
      running++;
      await held.opened;
    },
  });
  const calls = keys.map((word) => ship(word));
  await until('all run', () => running === callers);
  held.open();
  await Promise.all(calls);
  await gate.close();
});

it('50 waiters for locks share a signal; none is left on it, and it ends them all', async () => {
  const gate = open();
  const { signal, abort } = controlled();
  const holders = await Promise.all(keys.map((word) => gate.acquire(word, { signal })));
  expect(getEventListeners(signal, 'abort')).toEqual([]);
  const waits = keys.map((word) => gate.acquire(word, { signal, waitMs: 60_000 }));
  await turn();
  expect(getEventListeners(signal, 'abort').length).toBe(1);
  abort();
  await Promise.all(waits.map((wait) => rejection(wait, 'ABORTED')));
  await Promise.all(holders.map((holder) => holder.release()));
  await gate.close();
});

function controlled(): { readonly signal: AbortSignal; readonly abort: () => void } {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort() };
}
