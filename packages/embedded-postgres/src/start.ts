import { mkdirSync, realpathSync } from 'node:fs';
import { findBinaries, type PostgresBinaries } from './binaries.ts';
import { type Cluster, openCluster } from './cluster.ts';
import { EmbeddedPostgresError } from './embedded-postgres-error.ts';
import { findFreePort } from './free-port.ts';
import { chooseLauncher, type Launcher } from './launcher.ts';
import { assertOptions, type EmbeddedPostgresOptions } from './options.ts';
import { type OwnerLock, takeOwnership } from './owner-lock.ts';
import { waitForPredecessor } from './postmaster-file.ts';
import { attemptServer, stopServer } from './server.ts';
import type { SupervisedProcess } from './supervised-process.ts';
import { sleep } from './waiting.ts';

/** A running PostgreSQL. It keeps Node alive until it is stopped or has ended. */
export interface EmbeddedPostgres {
  /** Connection string of the superuser, password included: do not log it. */
  readonly url: string;
  readonly host: string;
  readonly port: number;
  /** Process number of the postmaster. */
  readonly pid: number;
  /**
   * Stops the server and waits for its end. Calling it again waits for the same end.
   *
   * `fast` (default) ends open transactions and writes a checkpoint; `immediate` is a crash that
   * the next start recovers from. Escalates by itself after 10 seconds.
   */
  stop(mode?: 'fast' | 'immediate'): Promise<void>;
  /** Ends the postmaster with SIGKILL, for crash tests. `exited` tells when it is gone. */
  kill(): void;
  /** Exit code of the postmaster; null when a signal ended it. Never rejects. */
  readonly exited: Promise<number | null>;
}

const HOST = '127.0.0.1';
const RETRY_MS = 100;
const PORTS_TRIED_MAX = 10;

/**
 * Starts a real PostgreSQL that lives and dies with this Node process.
 *
 * Committed data is durable (fsync is on). When Node ends without `stop`, even by SIGKILL, the
 * server shuts itself down, and the next start waits for that. Install your own handlers for
 * SIGINT and SIGTERM and call `stop` in them: Ctrl-C does not reach the server.
 *
 * @throws EmbeddedPostgresError see its `code`
 * @throws RangeError for a bad option, before anything is touched
 */
export async function startEmbeddedPostgres(
  options: EmbeddedPostgresOptions,
): Promise<EmbeddedPostgres> {
  assertOptions(options);
  const { startTimeoutMs: timeoutMs = 60_000, onLog = () => {}, initNoSync = false } = options;
  const deadlineMonoMs = performance.now() + timeoutMs;
  const binaries = findBinaries();
  mkdirSync(options.dataDir, { recursive: true });
  const dataDir = realpathSync(options.dataDir);
  const lock = takeOwnership(dataDir);
  try {
    const launcher = chooseLauncher(binaries, dataDir);
    const cluster = await openCluster({
      binaries,
      launcher,
      dataDir,
      initNoSync,
      timeoutMs,
      onLog,
    });
    await waitForPredecessor(cluster.pgdata, deadlineMonoMs - performance.now(), onLog);
    const context = { ...options, binaries, launcher, cluster, deadlineMonoMs, onLog };
    const { server, port } = await startServer(context);
    return handleFor(server, port, cluster, lock);
  } catch (error) {
    lock.release();
    throw error;
  }
}

interface StartContext extends EmbeddedPostgresOptions {
  readonly binaries: PostgresBinaries;
  readonly launcher: Launcher;
  readonly cluster: Cluster;
  readonly deadlineMonoMs: number;
  onLog(line: string): void;
}

async function startServer(
  context: StartContext,
): Promise<{ server: SupervisedProcess; port: number }> {
  const { settings = {}, deadlineMonoMs } = context;
  let portsTried = 0;
  for (;;) {
    const port = context.port ?? (await findFreePort());
    const attempt = await attemptServer({ ...context, settings, port });
    if (attempt.kind === 'ready') return { server: attempt.server, port };
    portsTried += 1;
    const mayRetry =
      (attempt.kind === 'still-busy' && performance.now() < deadlineMonoMs) ||
      (attempt.kind === 'port-taken' && !context.port && portsTried < PORTS_TRIED_MAX);
    if (mayRetry) {
      await sleep(RETRY_MS);
      continue;
    }
    const reason =
      attempt.kind === 'failed'
        ? attempt.reason
        : attempt.kind === 'port-taken'
          ? `could not use port ${port}`
          : 'found its data still in use';
    const message = `PostgreSQL ${reason}; its last log lines:\n${attempt.log}`;
    throw new EmbeddedPostgresError('START_FAILED', message);
  }
}

function handleFor(
  server: SupervisedProcess,
  port: number,
  cluster: Cluster,
  lock: OwnerLock,
): EmbeddedPostgres {
  const exited = server.exited.then((code) => {
    lock.release();
    return code;
  });
  return {
    url: `postgres://postgres:${cluster.password}@${HOST}:${port}/postgres`,
    host: HOST,
    port,
    pid: server.pid,
    exited,
    async stop(mode = 'fast') {
      await stopServer(server, mode);
      await exited;
    },
    kill() {
      server.signal('SIGKILL');
    },
  };
}
