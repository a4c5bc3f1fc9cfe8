import { randomBytes } from 'node:crypto';
import {
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { say } from './steps.mjs';

const POLL_MS = 200;

/**
 * Runs work while no other process runs work under the same lock directory.
 *
 * The directory holds numbered files and the highest number is the holder; taking over a dead
 * holder means creating the next number, which only one can do, and the highest file is never
 * deleted. (The same protocol as packages/embedded-postgres/src/owner-lock.ts, which cannot be
 * imported here because it is built under this lock.)
 *
 * The work gets a function that adds a child to the holder: should we be killed, the lock stays
 * taken until that child has ended too.
 */
export async function withProcessLock(dir, signal, work) {
  mkdirSync(dir, { recursive: true });
  const number = await acquire(dir, signal);
  const pids = [process.pid];
  try {
    return await work((pid) => {
      pids.push(pid);
      replace(dir, number, pids);
    });
  } finally {
    replace(dir, number, []);
  }
}

async function acquire(dir, signal) {
  let told = false;
  for (;;) {
    signal.throwIfAborted();
    const current = highest(dir);
    const holder = livingHolder(dir, current);
    if (holder !== undefined) {
      if (!told) say(`waiting for process ${holder}, which installs or builds`);
      told = true;
      await sleep(POLL_MS);
      continue;
    }
    const mine = current + 1;
    if (!create(dir, mine)) continue;
    if (highest(dir) === mine) {
      for (const number of numbers(dir))
        if (number < mine) rmSync(path(dir, number), { force: true });
      return mine;
    }
    rmSync(path(dir, mine), { force: true });
  }
}

function numbers(dir) {
  return readdirSync(dir).map(Number).filter(Number.isInteger);
}

function highest(dir) {
  return Math.max(0, ...numbers(dir));
}

function path(dir, number) {
  return join(dir, String(number));
}

function livingHolder(dir, number) {
  try {
    const holders = JSON.parse(readFileSync(path(dir, number), 'utf8'));
    return holders.find(({ pid, started }) => startOf(pid) === started)?.pid;
  } catch {
    return undefined;
  }
}

function create(dir, number) {
  const draft = writeDraft(dir, [process.pid]);
  try {
    linkSync(draft, path(dir, number));
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

function replace(dir, number, pids) {
  renameSync(writeDraft(dir, pids), path(dir, number));
}

function writeDraft(dir, pids) {
  const draft = join(dir, `draft-${process.pid}-${randomBytes(6).toString('hex')}`);
  const holders = pids.map((pid) => ({ pid, started: startOf(pid) }));
  writeFileSync(draft, JSON.stringify(holders), { flag: 'wx' });
  return draft;
}

/** Tells a process from a later one with its number; undefined when it has ended. */
function startOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return fields[0] === 'Z' ? undefined : `${bootId}:${fields[19]}`;
  } catch {
    if (process.platform === 'linux') return undefined;
  }
  try {
    process.kill(pid, 0);
    return 'running';
  } catch (error) {
    return error.code === 'EPERM' ? 'running' : undefined;
  }
}
