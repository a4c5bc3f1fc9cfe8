// One process of the chaos suite. argv: JSON of {node, store, resourceUrl, historyFile, names, tasks,
// leaseMs, waitMs, seed, mutant, inStep}. Runs critical sections until its parent says "finish", closes its
// clients and must then end by itself. It writes what happened, line by line, synchronously: a killed
// process keeps what it wrote.
import { closeSync, openSync, writeSync } from 'node:fs';
import { Redis } from 'ioredis';
import { redisFence } from '../../dist/fence/index.js';
import { createGate } from '../../dist/index.js';
import { memory } from '../../dist/stores/memory/index.js';
import { breakStore } from './mutants.mjs';
import { recorded } from './recorded-store.mjs';
import { openStore } from './worker-stores.mjs';

const config = JSON.parse(process.argv[2]);
const { node, names, leaseMs, waitMs } = config;
const file = openSync(config.historyFile, 'a');

/** CLOCK_MONOTONIC in milliseconds: the same for all processes of a machine. */
const monoMs = () => Number(process.hrtime.bigint() / 1_000n) / 1_000;
const note = (line) => writeSync(file, `${JSON.stringify({ t: monoMs(), node, ...line })}\n`);

process.on('unhandledRejection', (error) =>
  note({ side: 'process', verb: 'unhandled', code: text(error) }),
);
process.on('uncaughtException', (error) =>
  note({ side: 'process', verb: 'uncaught', code: text(error) }),
);

const text = (error) => error?.code ?? String(error?.stack ?? error);

const random = generator(config.seed);
const resource = new Redis(config.resourceUrl);
const fences = redisFence(resource);
const opened = await openStore(config.store);
const locks = recorded(breakStore(opened.locks, config.mutant), note);
const fenced = locks.capabilities.fencing !== 'none';
const gate = createGate({ records: memory(), locks });

let finishing = false;
let holdNext = false;
let goOn = () => {};
let attempts = 0;
let step;

process.on('message', ({ verb }) => {
  if (verb === 'finish') finishing = true;
  if (verb === 'hold') holdNext = true;
  if (verb === 'go') goOn();
});
process.send({ said: 'ready' });
await Promise.all(Array.from({ length: config.tasks }, (_, task) => work(task)));
note({ side: 'process', verb: 'closing' });
await opened.close();
await resource.quit();
note({ side: 'process', verb: 'closed' });
closeSync(file);
process.disconnect();

async function work(task) {
  while (!finishing) {
    await oneTurn(names[Math.floor(random() * names.length)], task);
    await between(8);
  }
}

/** A pause of at most so long; in step, all tasks of the process go on from it in one tick. */
function between(mostMs) {
  if (!config.inStep) return pause(random() * mostMs);
  step ??= pause(mostMs).then(() => {
    step = undefined;
  });
  return step;
}

async function oneTurn(name, task) {
  const id = `${node}.${task}.${++attempts}`;
  const say = (verb, phase, more = {}) => note({ side: 'client', verb, phase, name, id, ...more });
  // Every fourth waiter gives up by its signal, at the same moment as the others by their limit.
  const byAbort = attempts % 4 === 0;
  const limit = byAbort ? { waitMs: 60_000, signal: AbortSignal.timeout(waitMs) } : { waitMs };
  say('acquire', 'call', { waitMs });
  let lock;
  try {
    lock = await gate.acquire(name, { leaseMs, ...limit });
  } catch (error) {
    say('acquire', 'fail', { code: text(error) });
    await pause(20); // A store that refuses at once is not asked in a tight loop.
    return;
  }
  const fence = fenced ? lock.fence : undefined;
  say('acquire', 'ok', { fence: fence === undefined ? undefined : String(fence) });
  void lock.lost.then((error) => say('lost', 'ok', { code: error.code }));
  try {
    await effects({ name, id, lock, fence, say });
  } catch (error) {
    say('effect', 'fail', { code: text(error) });
  }
  say('release', 'call');
  say('release', 'ok', { answer: await lock.release() });
}

/** Two read-modify-writes on lists whose last entry is the counter: one fenced, one unprotected. */
async function effects({ name, id, lock, fence, say }) {
  const next = (entries) => (entries.length === 0 ? 1 : JSON.parse(entries[0]).n + 1);
  const entry = (n) => JSON.stringify({ n, id, fence: fence === undefined ? '0' : String(fence) });
  const last = ['LRANGE', '-1', '-1'];
  const key = `fenced:${name}`;
  const entered = fence === undefined ? undefined : await fences.enter({ key, fence, read: last });
  const seen = next(await resource.lrange(`raw:${name}`, -1, -1));
  await between(4);
  if (holdNext) {
    holdNext = false;
    process.send({ said: 'holding', name, id });
    await new Promise((resolve) => {
      goOn = resolve;
    });
  }
  // No question to the lock here: the fence alone must stop a holder of yesterday.
  if (entered !== undefined) {
    await entered.write('RPUSH', entry(next(entered.value))).then(
      () => say('fenced', 'ok'),
      (error) => say('fenced', 'fail', { code: text(error) }),
    );
  }
  lock.assertHeld();
  await resource.rpush(`raw:${name}`, entry(seen));
  say('raw', 'ok');
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
