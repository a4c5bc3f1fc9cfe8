import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chown, mkdir, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { PostgresBinaries } from './binaries.ts';
import { EmbeddedPostgresError } from './embedded-postgres-error.ts';
import type { Launcher } from './launcher.ts';
import { startSupervised } from './supervised-process.ts';
import { settlesWithin } from './waiting.ts';

/** The files of one database cluster and the way into it. */
export interface Cluster {
  readonly pgdata: string;
  readonly password: string;
}

export interface ClusterOptions {
  readonly binaries: PostgresBinaries;
  readonly launcher: Launcher;
  readonly dataDir: string;
  /** Skip the flush to disk of a new cluster. Only for throw-away data. */
  readonly initNoSync: boolean;
  readonly timeoutMs: number;
  onLog(line: string): void;
}

const PARTIAL = 'pgdata.partial-';

/**
 * Opens the cluster in the data directory, creating it on first use.
 *
 * `initdb` works in a directory of another name that is renamed at the end, so a first start that
 * was killed leaves nothing that looks finished; the next start wipes it and begins again.
 */
export async function openCluster(options: ClusterOptions): Promise<Cluster> {
  const pgdata = join(options.dataDir, 'pgdata');
  const passwordFile = join(options.dataDir, 'password');
  await removePartial(options.dataDir);
  if (!existsSync(pgdata)) await createCluster(options, pgdata, passwordFile);
  const password = await readFile(passwordFile, 'utf8').catch((error: unknown) => {
    const problem = `the password of ${pgdata} cannot be read: ${String(error)}`;
    throw new EmbeddedPostgresError('START_FAILED', problem, error);
  });
  return { pgdata, password: password.trim() };
}

async function removePartial(dataDir: string): Promise<void> {
  for (const name of await readdir(dataDir)) {
    if (!name.startsWith(PARTIAL)) continue;
    // An initdb that is just dying may still write here. What is left goes at the next start.
    await rm(join(dataDir, name), { recursive: true, force: true, maxRetries: 5 }).catch(() => {});
  }
}

async function createCluster(
  options: ClusterOptions,
  pgdata: string,
  passwordFile: string,
): Promise<void> {
  const { binaries, launcher, dataDir } = options;
  const partial = join(dataDir, `${PARTIAL}${process.pid}-${randomBytes(4).toString('hex')}`);
  await mkdir(partial, { mode: 0o700 });
  await rm(passwordFile, { force: true });
  await writeFile(passwordFile, `${randomBytes(24).toString('hex')}\n`, {
    mode: 0o600,
    flag: 'wx',
    flush: true,
  });
  if (launcher.user !== undefined) {
    await chown(partial, launcher.user.uid, launcher.user.gid);
    await chown(passwordFile, launcher.user.uid, launcher.user.gid);
  }
  const command = [binaries.initdb, '--pgdata', partial, '--pwfile', passwordFile];
  command.push('--username=postgres', '--auth=scram-sha-256', '--encoding=UTF8', '--locale=C');
  if (options.initNoSync) command.push('--no-sync');
  await runInitdb(options, command);
  await rename(partial, pgdata);
  if (!options.initNoSync) await syncDirectory(dataDir);
}

async function runInitdb(options: ClusterOptions, command: readonly string[]): Promise<void> {
  const { launcher, dataDir, onLog, timeoutMs } = options;
  const initdb = await startSupervised({ launcher, command, workingDir: dataDir, onLine: onLog });
  if (!(await settlesWithin(initdb.exited, timeoutMs))) {
    initdb.signal('SIGKILL');
    const log = await initdb.lastLines();
    throw new EmbeddedPostgresError(
      'START_FAILED',
      `initdb did not end within ${timeoutMs} ms; its last lines:\n${log}`,
    );
  }
  const code = await initdb.exited;
  if (code === 0) return;
  const how = code === null ? 'was killed' : `ended with code ${code}`;
  const log = await initdb.lastLines();
  throw new EmbeddedPostgresError('START_FAILED', `initdb ${how}; its last lines:\n${log}`);
}

async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
