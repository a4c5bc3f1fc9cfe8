import type { PostgresBinaries } from './binaries.ts';
import type { Cluster } from './cluster.ts';
import type { Launcher } from './launcher.ts';
import { readPostmasterFile } from './postmaster-file.ts';
import { type SupervisedProcess, startSupervised } from './supervised-process.ts';
import { settlesWithin, sleep } from './waiting.ts';

export interface ServerOptions {
  readonly binaries: PostgresBinaries;
  readonly launcher: Launcher;
  readonly cluster: Cluster;
  readonly port: number;
  readonly settings: Readonly<Record<string, string>>;
  readonly deadlineMonoMs: number;
  onLog(line: string): void;
}

/** How one attempt to start ended. */
export type ServerAttempt =
  | { readonly kind: 'ready'; readonly server: SupervisedProcess }
  /** Somebody else has the port. */
  | { readonly kind: 'port-taken'; readonly log: string }
  /** Children of a killed predecessor are still leaving. */
  | { readonly kind: 'still-busy'; readonly log: string }
  | { readonly kind: 'failed'; readonly reason: string; readonly log: string };

const POLL_MS = 20;
/** How long each way of stopping may take before the next, harsher one. */
const ESCALATE_MS = 10_000;

/** Starts PostgreSQL once and waits until it takes connections. */
export async function attemptServer(options: ServerOptions): Promise<ServerAttempt> {
  const { launcher, cluster, onLog } = options;
  const command = serverCommand(options);
  const workingDir = cluster.pgdata;
  const server = await startSupervised({ launcher, command, workingDir, onLine: onLog });
  let ended = false;
  void server.exited.then(() => {
    ended = true;
  });
  while (!ended) {
    const file = readPostmasterFile(cluster.pgdata);
    // The file of a killed predecessor also says "ready", so the number has to be ours.
    if (file?.pid === server.pid && file.ready) return { kind: 'ready', server };
    if (performance.now() > options.deadlineMonoMs) {
      await stopServer(server, 'immediate');
      return { kind: 'failed', reason: 'was not ready in time', log: await server.lastLines() };
    }
    await sleep(POLL_MS);
  }
  const log = await server.lastLines();
  if (log.includes('Address already in use')) return { kind: 'port-taken', log };
  if (/pre-existing shared memory block|lock file "postmaster.pid" already exists/.test(log)) {
    return { kind: 'still-busy', log };
  }
  const code = await server.exited;
  const reason = code === null ? 'was killed' : `ended with code ${code}`;
  return { kind: 'failed', reason, log };
}

/** Stops the server and waits for it, more harshly as time passes. */
export async function stopServer(
  server: SupervisedProcess,
  mode: 'fast' | 'immediate',
): Promise<void> {
  const signals: NodeJS.Signals[] =
    mode === 'fast' ? ['SIGINT', 'SIGQUIT', 'SIGKILL'] : ['SIGQUIT', 'SIGKILL'];
  for (const signal of signals) {
    server.signal(signal);
    if (await settlesWithin(server.exited, ESCALATE_MS)) return;
  }
  await server.exited;
}

function serverCommand({ binaries, cluster, port, settings }: ServerOptions): string[] {
  const all = {
    ...settings,
    port: String(port),
    listen_addresses: '127.0.0.1',
    // The path of a socket may have 107 characters at most, which a data directory exceeds easily.
    unix_socket_directories: '',
    logging_collector: 'off',
    log_destination: 'stderr',
  };
  const flags = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  return [binaries.postgres, '-D', cluster.pgdata, ...flags];
}
