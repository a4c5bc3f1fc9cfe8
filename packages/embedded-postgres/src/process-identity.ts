import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** A process that a later process with the same number is not mistaken for. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Opaque: boot and start time. Equal stamps and pids mean the same process. */
  readonly stamp: string;
}

/** Identity of a running process, or undefined when there is none (a zombie counts as none). */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  const stamp = process.platform === 'linux' ? linuxStamp(pid) : posixStamp(pid);
  return stamp === undefined ? undefined : { pid, stamp };
}

export function isRunning({ pid, stamp }: ProcessIdentity): boolean {
  return identifyProcess(pid)?.stamp === stamp;
}

function linuxStamp(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The command name may hold blanks and brackets, so count from the last bracket (field 2).
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const state = fields[0];
    if (state === 'Z' || state === 'X') return undefined;
    // Start ticks count from boot, so they repeat after a reboot.
    const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${bootId}:${fields[19]}`;
  } catch {
    return undefined;
  }
}

function posixStamp(pid: number): string | undefined {
  try {
    const started = execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
    return started === '' ? undefined : started;
  } catch {
    return undefined;
  }
}
