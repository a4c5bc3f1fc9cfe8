import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { settlesWithin } from './waiting.ts';

/** A program that is killed when this Node process ends, however that happens. */
export interface SupervisedProcess {
  /** Number of the program itself, not of its supervisor. */
  readonly pid: number;
  /** Exit code, or null when a signal ended the program. Never rejects. */
  readonly exited: Promise<number | null>;
  /** False once it has ended. */
  isAlive(): boolean;
  /** Signals the program; does nothing when it has ended. */
  signal(name: NodeJS.Signals): void;
  /** Last lines of output, after giving late ones a moment to arrive. */
  lastLines(): Promise<string>;
}

export interface SupervisedCommand {
  readonly command: readonly string[];
  readonly workingDir: string;
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Our end of the pipe at descriptor 3 closes when Node dies of anything, SIGKILL included. The
 * watcher then kills the program: its data is thrown away, so there is nothing to shut down in
 * order. It may die before it reads the number, so a broken pipe must not end the supervisor.
 * In either case helpers of the program, which share its process group, are told to end.
 * (packages/embedded-postgres has the same idea with an orderly shutdown, because its data stays.)
 */
const SUPERVISOR = `
exec 3<&0 </dev/null
"$@" 3<&- >&2 &
program=$!
trap '' PIPE
echo "$program"
exec >/dev/null
(
  exec 2>/dev/null
  trap '' TERM
  read -r _ <&3
  kill -KILL "$program"
  sleep 1
  kill -KILL 0
) &
watcher=$!
exec 3<&-
wait "$program"
code=$?
kill -KILL "$watcher" 2>/dev/null
trap '' TERM
kill -TERM 0
exit "$code"
`;

const LINES_KEPT = 30;
const LATE_OUTPUT_MS = 500;

type SupervisorChild = ChildProcessByStdio<Writable, Readable, Readable>;

/**
 * Starts a program in a session of its own, so that Ctrl-C in a terminal does not reach it, below
 * a small shell that kills it when this process is gone.
 */
export async function startSupervised(options: SupervisedCommand): Promise<SupervisedProcess> {
  const child = spawn('sh', ['-c', SUPERVISOR, 'sh', ...options.command], {
    cwd: options.workingDir,
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...programEnvironment(), ...options.env },
  });
  // Nothing is ever written; without a listener a broken pipe would end this process.
  child.stdin.on('error', () => {});
  let alive = true;
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const exited = new Promise<number | null>((resolve) => {
    const settle = (code: number | null) => {
      alive = false;
      child.stdin.destroy();
      // A shell reports the death of its child by signal n as code 128 + n.
      resolve(code === null || code > 128 ? null : code);
    };
    child.once('exit', settle);
    child.once('error', () => settle(null));
  });
  const lines: string[] = [];
  forEachLine(child.stderr, (line) => {
    lines.push(line);
    if (lines.length > LINES_KEPT) lines.shift();
  });
  const pid = await readProgramPid(child, exited);
  return {
    pid,
    exited,
    isAlive: () => alive,
    signal(name) {
      if (alive) killIfThere(pid, name);
    },
    async lastLines() {
      if (!alive) await settlesWithin(closed, LATE_OUTPUT_MS);
      return lines.join('\n');
    },
  };
}

/** Variables of the caller must not change how a server runs. */
function programEnvironment(): NodeJS.ProcessEnv {
  const { PATH, TZ, JAVA_HOME } = process.env;
  return {
    LC_ALL: 'C',
    ...(PATH && { PATH }),
    ...(TZ && { TZ }),
    ...(JAVA_HOME && { JAVA_HOME }),
  };
}

function readProgramPid(child: SupervisorChild, exited: Promise<unknown>): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    forEachLine(child.stdout, (line) => resolve(Number(line)));
    const fail = () => reject(new Error('the supervising shell ended before it started anything'));
    // Output may arrive after the exit event of a program that ends at once.
    void exited.then(() => setTimeout(fail, LATE_OUTPUT_MS).unref());
  });
}

function forEachLine(stream: Readable, onLine: (line: string) => void): void {
  let rest = '';
  stream.setEncoding('utf8');
  stream.on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) onLine(line);
  });
  stream.once('end', () => {
    if (rest !== '') onLine(rest);
  });
}

function killIfThere(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
