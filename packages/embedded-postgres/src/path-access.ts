import { realpathSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/** A user of the operating system, without supplementary groups. */
export interface User {
  readonly uid: number;
  readonly gid: number;
}

/**
 * The outermost directory or file that keeps a user from reaching a path, judged by mode bits.
 * The path itself must be searchable (directory) or readable (file).
 */
export function firstBlocked(path: string, user: User): string | undefined {
  return [...ancestors(realpathSync(path))].find((part) => !mayPass(part, user));
}

function ancestors(path: string): string[] {
  const parent = dirname(path);
  return parent === path ? [path] : [...ancestors(parent), path];
}

function mayPass(path: string, { uid, gid }: User): boolean {
  const stats = statSync(path);
  const shift = stats.uid === uid ? 6 : stats.gid === gid ? 3 : 0;
  const needed = stats.isDirectory() ? 0o1 : 0o4;
  return ((stats.mode >> shift) & needed) !== 0;
}
