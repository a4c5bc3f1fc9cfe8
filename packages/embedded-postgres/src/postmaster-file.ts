import { readFileSync, readlinkSync, realpathSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { EmbeddedPostgresError } from './embedded-postgres-error.ts';
import { identifyProcess } from './process-identity.ts';
import { sleep } from './waiting.ts';

const POLL_MS = 25;
/** How long a fast shutdown may take before the quick one is asked for. */
const FAST_SHUTDOWN_MS = 10_000;

/** What `postmaster.pid` says; undefined when there is no such file or it is half written. */
export function readPostmasterFile(pgdata: string): { pid: number; ready: boolean } | undefined {
  try {
    const lines = readFileSync(join(pgdata, 'postmaster.pid'), 'utf8').split('\n');
    const pid = Number(lines[0]);
    // Line 8 is the status that pg_ctl reads too.
    return Number.isInteger(pid) && pid > 0
      ? { pid, ready: lines[7]?.trim() === 'ready' }
      : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Stops and waits for a server that a dead owner left behind on this cluster.
 *
 * The caller owns the data directory, so nobody can be using that server on purpose. Usually its
 * supervisor is stopping it already, and asking twice does no harm.
 */
export async function waitForPredecessor(
  pgdata: string,
  timeoutMs: number,
  onLog: (line: string) => void,
): Promise<void> {
  const pid = readPostmasterFile(pgdata)?.pid;
  if (pid === undefined) return;
  if (!isPostmasterOf(pid, pgdata)) {
    // A file of a dead server is PostgreSQL's to judge, but it would take an unrelated process
    // that got the same number for a server and refuse to start.
    if (identifyProcess(pid) !== undefined) rmSync(join(pgdata, 'postmaster.pid'), { force: true });
    return;
  }
  onLog(`waiting for PostgreSQL process ${pid}, left by an earlier owner, to stop`);
  const startMs = performance.now();
  signal(pid, 'SIGINT');
  let escalated = false;
  while (isPostmasterOf(pid, pgdata)) {
    const waitedMs = performance.now() - startMs;
    if (waitedMs > timeoutMs) {
      throw new EmbeddedPostgresError(
        'START_FAILED',
        `PostgreSQL process ${pid} still runs on ${pgdata} after ${timeoutMs} ms`,
      );
    }
    if (waitedMs > FAST_SHUTDOWN_MS && !escalated) {
      escalated = true;
      signal(pid, 'SIGQUIT');
    }
    await sleep(POLL_MS);
  }
}

/** A postmaster works in its data directory, which tells it from a process that got its number. */
function isPostmasterOf(pid: number, pgdata: string): boolean {
  if (identifyProcess(pid) === undefined) return false;
  if (process.platform !== 'linux') return true;
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === realpathSync(pgdata);
  } catch {
    return false;
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has gone, or it is not ours to signal; the wait finds out.
  }
}
