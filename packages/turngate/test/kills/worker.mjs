// One process of the kill suite. argv: JSON of {node, store, logFile, providerUrl, seed, beganAtMs,
// msPerKey, leaseMs, settle}. Calls every operation, over and over, with keys that other processes call
// too, until it is killed. It writes down what its callers were told, line by line, synchronously: a
// killed process keeps what it wrote. With `settle` (a number of keys) it calls each key once and ends.
import { openSync, writeSync } from 'node:fs';
import { declareCalls } from './worker-calls.mjs';
import { openStore } from './worker-stores.mjs';

const config = JSON.parse(process.argv[2]);
const file = openSync(config.logFile, 'a');
const note = (line) => writeSync(file, `${JSON.stringify(line)}\n`);
process.on('unhandledRejection', (error) =>
  note({ call: 'process', key: '', code: text(error), ms: 0 }),
);

const text = (error) => error?.code ?? String(error?.stack ?? error);
const tasks = 6;
const windowKeys = 24;
/** A process that is killed while it starts shows nothing. */
const answersBeforeReady = 10;
/** A starved machine can miss a deadline. */
const triesMax = 5;
let answered = 0;
const random = generator(config.seed);
const opened = await openStore(config.store);
const { calls, recovery, close } = declareCalls(opened, { ...config, random });
const names = Object.keys(calls);

process.on('disconnect', () => process.exit()); // Whoever was to kill us is gone.
if (config.settle === undefined) {
  await Promise.all(Array.from({ length: tasks }, work));
} else {
  await settle(config.settle);
  await recovery?.stop();
  await close();
  await opened.close();
  process.disconnect();
}

async function work() {
  for (;;) {
    await ask(names[whole(names.length)], keyNow());
    if (++answered === answersBeforeReady) process.send('ready');
    await pause(random() * 120);
  }
}

/** Mostly one that others call at the same time, sometimes one of long ago. */
function keyNow() {
  const newest = Math.floor((Date.now() - config.beganAtMs) / config.msPerKey);
  const oldest = random() < 0.8 ? Math.max(0, newest - windowKeys) : 0;
  return `k${oldest + whole(newest - oldest + 1)}`;
}

/** The newest first: those are the ones that somebody died over. */
async function settle(keys) {
  const queue = Array.from({ length: keys }, (_, i) => names.map((name) => [name, `k${i}`])).flat();
  const drain = async () => {
    for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
      for (let tries = 1; !(await ask(...next)) && tries < triesMax; tries++) await pause(500);
    }
  };
  await Promise.all(Array.from({ length: 16 }, drain));
}

async function ask(call, key) {
  const startMs = performance.now();
  const ms = () => Math.round(performance.now() - startMs);
  try {
    const { value, replayed } = await calls[call](key);
    note({ call, key, token: value, replayed, ms: ms() });
    return true;
  } catch (error) {
    note({ call, key, code: text(error), ms: ms() });
    return false;
  }
}

function whole(below) {
  return Math.floor(random() * below);
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** mulberry32 */
function generator(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
