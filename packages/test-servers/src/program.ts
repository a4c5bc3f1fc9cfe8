import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { TestServerError } from './test-server-error.ts';

/** The scripts themselves; those of the PATH change to the user of Debian's own RabbitMQ. */
const FIRST_DIRS = ['/usr/lib/rabbitmq/bin'];
/** Where Debian puts servers; the PATH of a person without root rights often lacks them. */
const LAST_DIRS = ['/usr/local/sbin', '/usr/sbin', '/sbin'];

/** Debian's Java libraries, each of which names the others that it needs. */
const JAVA_DIR = '/usr/share/java';

/** Path of a program, or of a `.jar`; undefined when it is not installed. */
export function lookForProgram(name: string): string | undefined {
  if (name.endsWith('.jar')) {
    const jar = join(JAVA_DIR, name);
    return existsSync(jar) ? jar : undefined;
  }
  const dirs = [...FIRST_DIRS, ...(process.env['PATH'] ?? '').split(delimiter), ...LAST_DIRS];
  return dirs.map((dir) => join(dir, name)).find(isExecutable);
}

/** @throws TestServerError `MISSING` */
export function findProgram(name: string): string {
  const path = lookForProgram(name);
  if (path !== undefined) return path;
  const advice = 'as root on Debian, "npm test" in the root of the repository installs it';
  throw new TestServerError('MISSING', `${name} is not installed; ${advice}`);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
