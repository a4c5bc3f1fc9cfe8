/** Starts workers, kills them at seeded moments, and lets a last one call every key again. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryDir } from '@turngate/test-servers';
import { chance, chaosSeed } from '../chaos/schedule.ts';
import { pause, until } from '../support/clock.ts';
import { readTold, type Told } from './audit.ts';
import { Provider } from './provider.ts';

const workers = 4;
const msPerKey = 500;

/** How long workers are killed. The issue asks for 600_000. */
export const killMs: number = Number(process.env['TURNGATE_KILL_MS'] ?? 4_000);
/** For how long a dead process keeps a key, where there is a lease. */
export const leaseMs = 2_000;

/** What a run left behind. */
export interface KillRun {
  readonly kills: number;
  /** What callers were told while workers died. */
  readonly told: readonly Told[];
  /** What the last worker was told, for each key once. */
  readonly settled: readonly Told[];
  /** Effects that were committed when the last of them had died. */
  readonly linesAfterKills: readonly string[];
  readonly lines: readonly string[];
  readonly provider: Provider;
}

/** Runs it; `effects` reads the committed lines. */
export async function killForAWhile(
  store: object,
  effects: () => Promise<string[]>,
): Promise<KillRun> {
  const dir = await temporaryDir('kills');
  const provider = new Provider();
  const all: ChildProcess[] = [];
  const ready: ChildProcess[] = [];
  try {
    const [toldDir, settledDir] = [join(dir.path, 'told'), join(dir.path, 'settled')];
    for (const folder of [toldDir, settledDir]) mkdirSync(folder);
    const shared = {
      store,
      leaseMs,
      msPerKey,
      beganAtMs: Date.now(),
      providerUrl: await provider.start(),
    };
    let started = 0;
    const start = (more: object = {}): ChildProcess => {
      const number = started++;
      const node = `w${number}`;
      const folder = 'settle' in more ? settledDir : toldDir;
      const logFile = join(folder, `${node}.jsonl`);
      const config = { ...shared, node, logFile, seed: chaosSeed + number, ...more };
      return fork(fileURLToPath(new URL('worker.mjs', import.meta.url)), [JSON.stringify(config)]);
    };
    const startReady = async (): Promise<void> => {
      const worker = start();
      all.push(worker);
      const [how] = await Promise.race([once(worker, 'message'), once(worker, 'exit')]);
      if (how !== 'ready') throw new Error(`a worker ended by itself: ${how}`);
      ready.push(worker);
    };
    await Promise.all(Array.from({ length: workers }, startReady));
    const kills = await killAtRandom(ready, startReady);
    const keys = Math.ceil((Date.now() - shared.beganAtMs) / msPerKey);
    const linesAfterKills = await effects();
    const last = start({ settle: keys });
    all.push(last);
    const [code] = await once(last, 'exit');
    if (code !== 0) throw new Error(`the last worker ended with ${code}`);
    const [told, settled] = [readTold(toldDir), readTold(settledDir)];
    return { kills, told, settled, linesAfterKills, lines: await effects(), provider };
  } finally {
    await Promise.all(all.map(kill));
    provider.stop();
    await dir.remove();
  }
}

/** One at a time, with another started in its place; in the end all of them. Gives how many. */
async function killAtRandom(
  ready: ChildProcess[],
  startReady: () => Promise<void>,
): Promise<number> {
  const { between, pick } = chance(chaosSeed);
  const endMs = Date.now() + killMs;
  const starting: Promise<void>[] = [];
  let kills = 0;
  while (Date.now() < endMs) {
    await pause(between(100, 1_000));
    await until('a worker is ready', () => ready.length > 0, 120_000);
    const victim = pick(ready);
    ready.splice(ready.indexOf(victim), 1);
    await kill(victim);
    kills++;
    const next = startReady();
    next.catch(() => undefined); // Told below.
    starting.push(next);
  }
  await Promise.all(starting);
  kills += ready.length;
  await Promise.all(ready.splice(0).map(kill));
  return kills;
}

async function kill(worker: ChildProcess): Promise<void> {
  if (worker.exitCode !== null || worker.signalCode !== null) return;
  const ended = once(worker, 'exit');
  worker.kill('SIGKILL');
  await ended;
}
