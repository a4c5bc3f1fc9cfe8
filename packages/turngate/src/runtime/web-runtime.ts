/** Clocks, timers and chance where there is no `node:`: browsers and edge workers. */
import { delayMaxMs, longTimer } from './long-timer.ts';
import type { Runtime, Timer } from './runtime.ts';

function webTimer(delayMs: number, keepAlive: boolean, run: () => void): Timer {
  if (delayMs > delayMaxMs) {
    return longTimer((partMs, next) => webTimer(partMs, keepAlive, next), delayMs, run);
  }
  const handle = setTimeout(run, delayMs);
  return { cancel: () => clearTimeout(handle) };
}

/** The platform's own, by the globals every runtime has. */
export const webRuntime: Runtime = {
  wallMs: () => Date.now(),
  monoMs: () => globalThis.performance.now(),
  timer: webTimer,
  random: () => Math.random(),
  randomId: () => globalThis.crypto.randomUUID(),
};
