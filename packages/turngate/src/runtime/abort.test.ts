import { getEventListeners } from 'node:events';
import { expect, it } from 'vitest';
import { ownSignal, whenAborted } from './abort.ts';

it('everybody who waits is called once; who has taken it back is not', () => {
  const { signal, abort } = source();
  const called: string[] = [];
  const ends = ['a', 'b', 'c'].map((name) => whenAborted(signal, () => called.push(name)));
  ends[1]?.();
  ends[1]?.();
  abort();
  abort();
  expect(called).toEqual(['a', 'c']);
});

it('one function may wait twice, and one end takes one of them back', () => {
  const { signal, abort } = source();
  let calls = 0;
  const run = (): void => void calls++;
  whenAborted(signal, run)();
  whenAborted(signal, run);
  whenAborted(signal, run);
  abort();
  expect(calls).toBe(2);
});

it('a signal that has aborted calls at once', () => {
  let calls = 0;
  whenAborted(AbortSignal.abort(), () => calls++)();
  expect(calls).toBe(1);
});

it('who begins to wait while the others are told is called too', () => {
  const { signal, abort } = source();
  let late = 0;
  whenAborted(signal, () => void whenAborted(signal, () => late++));
  abort();
  expect(late).toBe(1);
});

it('50 who wait are one listener, which goes with the last of them', () => {
  const { signal } = source();
  const listeners = (): number => getEventListeners(signal, 'abort').length;
  const ends = Array.from({ length: 50 }, () => whenAborted(signal, () => {}));
  expect(listeners()).toBe(1);
  for (const end of ends.slice(1)) end();
  expect(listeners()).toBe(1);
  ends[0]?.();
  expect(listeners()).toBe(0);
});

it('a signal of several aborts with the first reason, and with none once forgotten', () => {
  const [one, two, three] = [source(), source(), source()];
  const either = ownSignal(one.signal, two.signal);
  const forgotten = ownSignal(one.signal, three.signal);
  forgotten.forget();
  two.abort('second');
  one.abort('first');
  expect([either.signal.reason, forgotten.signal.aborted]).toEqual(['second', false]);
  expect(ownSignal(three.signal, two.signal).signal.reason).toBe('second');
});

function source(): { readonly signal: AbortSignal; readonly abort: (why?: unknown) => void } {
  const controller = new AbortController();
  return { signal: controller.signal, abort: (why) => controller.abort(why) };
}
