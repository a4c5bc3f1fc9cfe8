import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { describe, onTestFinished } from 'vitest';
import { lookForProgram } from '../src/program.ts';
import { sleep } from '../src/waiting.ts';

/** `describe` that is skipped, loudly, without these programs; where servers are required it fails. */
export function describeWith(programs: readonly string[], title: string, body: () => void): void {
  const missing = programs.filter((name) => lookForProgram(name) === undefined);
  const why = `${missing.join(', ')} not installed`;
  if (missing.length > 0) {
    if (process.env['CI'] || process.env['TURNGATE_REQUIRE_SERVERS']) throw new Error(why);
    console.warn(`SKIPPED "${title}": ${why}`);
  }
  describe.skipIf(missing.length > 0)(title, body);
}

/** Makes a directory of this test the place of all temporary files, so that it sees what is left. */
export async function ownTemporaryFiles(): Promise<{ left(): Promise<string[]> }> {
  const before = process.env['TMPDIR'];
  const dir = await mkdtemp(join(tmpdir(), 'tgt-'));
  process.env['TMPDIR'] = dir;
  onTestFinished(async () => {
    if (before === undefined) delete process.env['TMPDIR'];
    else process.env['TMPDIR'] = before;
    await rm(dir, { recursive: true, force: true, maxRetries: 10 });
  });
  return { left: () => readdir(dir) };
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

export function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
    socket.once('close', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  limitMs = 20_000,
): Promise<void> {
  const endMonoMs = performance.now() + limitMs;
  while (!(await holds())) {
    if (performance.now() > endMonoMs) throw new Error(`not within ${limitMs} ms: ${what}`);
    await sleep(20);
  }
}

/** A Node process that starts servers and then waits to be killed. */
export function spawnOwner(...kinds: string[]): ChildProcessByStdio<null, Readable, null> {
  const path = fileURLToPath(new URL('owner-child.mjs', import.meta.url));
  const child = spawn(process.execPath, [path, ...kinds], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

/** The same, when all are ready. */
export async function startOwner(
  ...kinds: string[]
): Promise<{ process: ChildProcess; servers: { pid: number; port: number }[] }> {
  const child = spawnOwner(...kinds);
  const line = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).once('line', resolve);
    child.once('exit', () => reject(new Error('the owner ended without a line')));
  });
  return { process: child, servers: JSON.parse(line) };
}

/** Command lines of all processes that mention a text; none where there is no `/proc`. */
export function commandLinesWith(text: string): string[] {
  if (!existsSync('/proc/self/cmdline')) return [];
  return readdirSync('/proc')
    .filter((name) => Number(name) > 0)
    .map(commandLineOf)
    .filter((line) => line.includes(text));
}

function commandLineOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return ''; // It has just ended.
  }
}
