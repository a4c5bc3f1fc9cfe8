/** The book of attempts, on a clock that stands still until it is moved. */
import { beforeEach, expect, it } from 'vitest';
import { type AttemptEntry, Attempts } from './attempts.ts';
import { Lapses } from './lapses.ts';
import { type Runtime, systemRuntime } from './runtime.ts';

let nowMs = 0;
let due: (() => void) | undefined;
const runtime: Runtime = {
  ...systemRuntime,
  monoMs: () => nowMs,
  timer(_delayMs, _keepAlive, run) {
    due = run;
    return { cancel: () => (due = undefined) };
  },
};
function passTime(ms: number): void {
  nowMs += ms;
  due?.();
}

const entryAt = (owner: string, held = false): AttemptEntry => ({
  name: 'seat 1',
  owner,
  held,
  deadlineMonoMs: 0,
});

let lapsed: string[] = [];
let attempts: Attempts<AttemptEntry>;
beforeEach(() => {
  nowMs = 0;
  lapsed = [];
  attempts = new Attempts(runtime, new Lapses(runtime), (entry) => lapsed.push(entry.owner));
});

it('a grant lapses once when its lease has ended, a renewed one later', () => {
  const entry = entryAt('a', true);
  attempts.add(entry);
  attempts.keepHold(entry, 100);
  passTime(60);
  attempts.keepHold(entry, 100);
  passTime(60);
  expect([lapsed, attempts.isDue(entry), attempts.leftMs(entry)]).toEqual([[], false, 40]);
  passTime(40);
  expect([lapsed, attempts.isDue(entry), attempts.leftMs(entry)]).toEqual([['a'], true, 0]);
  passTime(1_000);
  expect(lapsed).toEqual(['a']);
});

it('a place lapses without a lease, and a place is nothing that is held', () => {
  const entry = entryAt('a');
  attempts.add(entry);
  attempts.keepPlace(entry, 50);
  expect(attempts.leftMs(entry)).toBeUndefined();
  passTime(50);
  expect(lapsed).toEqual(['a']);
});

it('what is forgotten never lapses, and a late forgetting spares the entry that came after', () => {
  const [before, after] = [entryAt('a'), entryAt('a')];
  attempts.add(before);
  attempts.keepPlace(before, 50);
  attempts.add(after);
  attempts.forget(before);
  expect([attempts.isCurrent(before), attempts.get(before) === after]).toEqual([false, true]);
  passTime(100);
  expect(lapsed).toEqual([]);
});
