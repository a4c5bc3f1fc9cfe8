// The measured process of the lock suite: opens one kind of lock and does what it is asked.
import { createHook } from 'node:async_hooks';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { serve } from '../lib/child.mjs';
import { cpuMsSince, nowUs } from '../lib/clock.mjs';
import { adapterOf } from './catalog.mjs';

let lock;
let kept;
let held;

/** Every task takes the lock once, or again and again until `untilUs`. */
async function contend({ key, tasks, insideMs, startUs, untilUs = 0 }) {
  const records = [];
  const failures = {};
  while (nowUs() < startUs) await sleep(1);
  const before = process.cpuUsage();
  const turn = async (task) => {
    const askedUs = nowUs();
    const release = await lock.acquire(key);
    const gotUs = nowUs();
    if (insideMs > 0) await sleep(insideMs);
    records.push([task, askedUs, gotUs, nowUs()]);
    await release();
  };
  const work = async (_, task) => {
    try {
      do await turn(task);
      while (nowUs() < untilUs);
    } catch (error) {
      const kind = error?.code ?? error?.name ?? 'unknown';
      failures[kind] = (failures[kind] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: tasks }, work));
  return { records, failures, cpuMs: cpuMsSince(before) };
}

function heapUsed() {
  globalThis.gc();
  globalThis.gc();
  return process.memoryUsage().heapUsed;
}

const namesOf = ({ count }) => Array.from({ length: count }, (_, i) => `hold:${i}`);

serve({
  async open({ id, ...settings }) {
    const adapter = await adapterOf(id);
    lock = await adapter.open(settings);
    const release = await lock.acquire(`warm:${process.pid}`);
    await release();
  },
  contend,
  async keep({ key }) {
    kept = await lock.acquire(key);
  },
  async give() {
    await kept();
  },
  async hold(terms) {
    const adapter = await adapterOf(terms.id); // Loaded code is not heap of a lock.
    const keys = namesOf(terms);
    await sleep(200);
    const before = heapUsed();
    held = await adapter.hold({ ...terms, keys });
    await sleep(300); // Replies are read, timers of the start are gone.
    return { heapBytes: (heapUsed() - before) / keys.length };
  },
  /** Also timers that would not keep the process alive. Slows everything: for no other figure. */
  async countTimers(terms) {
    const timers = new Set();
    const hook = createHook({
      init: (asyncId, type) => type === 'Timeout' && timers.add(asyncId),
      destroy: (asyncId) => timers.delete(asyncId),
    }).enable();
    const adapter = await adapterOf(terms.id);
    const { stop } = await adapter.hold({ ...terms, keys: namesOf(terms) });
    await new Promise((resolve) => setImmediate(resolve));
    const count = timers.size;
    hook.disable();
    await stop();
    return count;
  },
  async watch({ forMs }) {
    const delay = monitorEventLoopDelay({ resolution: 5 });
    const before = process.cpuUsage();
    delay.enable();
    await sleep(forMs);
    delay.disable();
    return {
      cpuMs: cpuMsSince(before),
      stallMs: delay.max / 1e6,
      stallP99Ms: delay.percentile(99) / 1e6,
    };
  },
  stopHolding: () => held.stop(),
  /** Each cycle on a name of its own, 64 at a time. */
  async cycle({ from, count }) {
    let next = from;
    const work = async () => {
      while (next < from + count) {
        const release = await lock.acquire(`cycle:${next++}`);
        await release();
      }
    };
    await Promise.all(Array.from({ length: 64 }, work));
    await sleep(100);
    return { heapBytes: heapUsed() };
  },
  close: () => lock?.close(),
});
