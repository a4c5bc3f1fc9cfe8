import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { type Runtime, systemRuntime } from './runtime.ts';
import { webRuntime } from './web-runtime.ts';

const dayMs = 86_400_000;
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

const runtimes: readonly [string, Runtime][] = [
  ['the system', systemRuntime],
  ['the web', webRuntime],
];

it.each(runtimes)(
  'a timer of %s that is longer than 31 bits does not run at once',
  (_, runtime) => {
    let runs = 0;
    runtime.timer(60 * dayMs, true, () => runs++);
    vi.advanceTimersByTime(60 * dayMs - 1);
    expect(runs).toBe(0);
    vi.advanceTimersByTime(1);
    expect(runs).toBe(1);
    expect(vi.getTimerCount()).toBe(0);
  },
);

it.each(runtimes)('a long timer of %s can be taken back, also in its second part', (_, runtime) => {
  let runs = 0;
  const timers = [5, 30].map((day) => {
    const timer = runtime.timer(60 * dayMs, false, () => runs++);
    return { day, timer };
  });
  for (const { day, timer } of timers) {
    vi.advanceTimersByTime(day * dayMs);
    timer.cancel();
  }
  expect(vi.getTimerCount()).toBe(0);
  vi.advanceTimersByTime(100 * dayMs);
  expect(runs).toBe(0);
});
