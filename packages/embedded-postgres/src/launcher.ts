import { spawnSync } from 'node:child_process';
import { chownSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { PostgresBinaries } from './binaries.ts';
import { EmbeddedPostgresError } from './embedded-postgres-error.ts';
import { firstBlocked, type User } from './path-access.ts';

/** How to start a program so that PostgreSQL accepts its user. */
export interface Launcher {
  /** Who runs the program and owns the data; undefined is the user of this process. */
  readonly user: User | undefined;
  /** Change the user when spawning. Otherwise `prefix` does it. */
  readonly spawnAs: User | undefined;
  readonly prefix: readonly string[];
}

/** `nobody`: the one unprivileged user that every system has. We do not add users to a machine. */
const NOBODY: User = { uid: 65534, gid: 65534 };

/** Least powerful first; containers often have only the second. Numbers are kernel bits. */
const CAPABILITIES = [
  { name: 'dac_read_search', bit: 2n },
  { name: 'dac_override', bit: 1n },
] as const;

/**
 * Decides how to start PostgreSQL, which refuses to run as root.
 *
 * Not root: start it directly. Root: start it as the owner of existing data, else as `nobody`.
 * When that user cannot get at the files, for example below a home directory of mode 0700, it is
 * given the one capability that lets it pass, tried out before it is chosen.
 *
 * @throws EmbeddedPostgresError `NOT_REACHABLE`, naming the directory and the ways out
 */
export function chooseLauncher(binaries: PostgresBinaries, dataDir: string): Launcher {
  if (process.getuid?.() !== 0) return { user: undefined, spawnAs: undefined, prefix: [] };
  const user = ownerOf(join(dataDir, 'pgdata')) ?? NOBODY;
  // A directory made by root's mkdtemp has mode 0700; as its owner PostgreSQL may enter.
  if (isUnused(dataDir)) chownSync(dataDir, user.uid, user.gid);
  const blocked = firstBlockedOf(binaries, dataDir, user);
  if (blocked === undefined) return { user, spawnAs: user, prefix: [] };
  for (const { name, bit } of CAPABILITIES) {
    if ((permittedCapabilities() & (1n << bit)) === 0n) continue;
    const prefix = setprivPrefix(user, name);
    if (works(prefix, binaries, dataDir)) return { user, spawnAs: undefined, prefix };
  }
  throw new EmbeddedPostgresError(
    'NOT_REACHABLE',
    `PostgreSQL does not run as root, so it was to run as user ${user.uid}, which may not pass ` +
      `${blocked}. Ways out: do not run as root; or "chmod o+x ${blocked}"; or move the data ` +
      '(TURNGATE_DATA_DIR) or the project to a directory that other users can reach',
  );
}

function isUnused(dataDir: string): boolean {
  return readdirSync(dataDir).every((name) => name.startsWith('owner-'));
}

function ownerOf(path: string): User | undefined {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats === undefined || stats.uid === 0 ? undefined : { uid: stats.uid, gid: stats.gid };
}

function firstBlockedOf(
  { packageDir, postgres }: PostgresBinaries,
  dataDir: string,
  user: User,
): string | undefined {
  // One file of each folder of the package is enough: npm gives all of them the same mode.
  const needed = [
    postgres,
    join(packageDir, 'native', 'lib'),
    join(packageDir, 'native', 'share', 'postgresql', 'postgres.bki'),
    dataDir,
  ];
  for (const path of needed) {
    const blocked = firstBlocked(path, user);
    if (blocked !== undefined) return blocked;
  }
  return undefined;
}

function permittedCapabilities(): bigint {
  try {
    const status = readFileSync('/proc/self/status', 'utf8');
    return BigInt(`0x${/^CapPrm:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'}`);
  } catch {
    return 0n;
  }
}

function setprivPrefix({ uid, gid }: User, capability: string): string[] {
  return [
    'setpriv',
    `--reuid=${uid}`,
    `--regid=${gid}`,
    '--clear-groups',
    // PostgreSQL asks access(2) for its own program file, which ignores capabilities of a user
    // other than root unless this bit is set.
    '--securebits=+no_setuid_fixup',
    `--inh-caps=-all,+${capability}`,
    `--ambient-caps=+${capability}`,
  ];
}

function works(prefix: readonly string[], { postgres }: PostgresBinaries, dir: string): boolean {
  const [command = '', ...args] = prefix;
  const script = 'cd "$2" && exec "$1" --version';
  const run = spawnSync(command, [...args, 'sh', '-c', script, 'sh', postgres, dir], {
    encoding: 'utf8',
  });
  // A program that cannot find itself still prints its version, but complains.
  return run.status === 0 && run.stderr === '';
}
