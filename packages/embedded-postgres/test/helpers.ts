import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Client } from 'pg';
import { onTestFinished } from 'vitest';
import { identifyProcess } from '../src/process-identity.ts';
import { sleep } from '../src/waiting.ts';

/** A directory that goes with the test. */
export async function temporaryDir(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'turngate-pg-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true, maxRetries: 10 }));
  return dir;
}

export async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new Client(url);
  // A server that is killed tells idle clients by an event.
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

export function isAlive(pid: number): boolean {
  return identifyProcess(pid) !== undefined;
}

/** Polls until the condition holds; fails naming it otherwise. */
export async function until(what: string, holds: () => boolean, limitMs = 15_000): Promise<void> {
  const startMs = performance.now();
  while (!holds()) {
    if (performance.now() - startMs > limitMs) throw new Error(`not within ${limitMs} ms: ${what}`);
    await sleep(20);
  }
}

export interface NodeChild {
  readonly process: ChildProcess;
  readonly pid: number;
  /** The first line that it wrote. */
  readonly line: string;
}

/** Starts a Node child from this folder, in a process group of its own, and reads one line. */
export async function startChild(script: string, ...args: string[]): Promise<NodeChild> {
  const path = fileURLToPath(new URL(script, import.meta.url));
  const child = spawn(process.execPath, [path, ...args], {
    detached: true,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  });
  const line = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).once('line', resolve);
    child.once('exit', () => reject(new Error(`${script} ended without a line`)));
  });
  return { process: child, pid: child.pid ?? -1, line };
}

/** A Node process that owns a running server. */
export async function startOwner(
  dataDir: string,
): Promise<NodeChild & { url: string; serverPid: number }> {
  const child = await startChild('owner-child.mjs', dataDir);
  const answer = JSON.parse(child.line) as { url: string; pid: number; message?: string };
  if (answer.message !== undefined) throw new Error(answer.message);
  return { ...child, url: answer.url, serverPid: answer.pid };
}
