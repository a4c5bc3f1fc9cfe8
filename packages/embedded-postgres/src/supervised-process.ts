import { spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import type { Launcher } from './launcher.ts';
import { settlesWithin } from './waiting.ts';

/** A program that is told to stop when this Node process ends, however that happens. */
export interface SupervisedProcess {
  /** Number of the program itself, not of its supervisor. */
  readonly pid: number;
  /** Exit code, or null when a signal ended the program. Never rejects. */
  readonly exited: Promise<number | null>;
  /** Signals the program; does nothing when it has ended. */
  signal(name: NodeJS.Signals): void;
  /** Last lines of output, after giving late ones a moment to arrive. */
  lastLines(): Promise<string>;
}

export interface SupervisedCommand {
  readonly launcher: Launcher;
  readonly command: readonly string[];
  readonly workingDir: string;
  onLine(line: string): void;
}

/**
 * Our end of the pipe at descriptor 3 closes when Node dies of anything, SIGKILL included. The
 * watcher then stops the program: fast shutdown, and after 20 seconds the quick way.
 * `read` is a builtin, so killing the watcher leaves no process behind.
 */
const SUPERVISOR = `
exec 3<&0 </dev/null
"$@" 3<&- >&2 &
program=$!
trap "" PIPE
echo "$program"
exec >/dev/null
(
  exec 2>/dev/null
  read -r _ <&3
  kill -INT "$program"
  seconds=0
  while [ "$seconds" -lt 20 ] && kill -0 "$program"; do sleep 1; seconds=$((seconds + 1)); done
  kill -QUIT "$program"
) &
watcher=$!
exec 3<&-
wait "$program"
code=$?
kill "$watcher" 2>/dev/null
exit "$code"
`;

const LINES_KEPT = 30;
const LATE_OUTPUT_MS = 500;

/**
 * Starts a program in a session of its own, so that Ctrl-C in a terminal does not reach it, below
 * a small shell that stops it when this process is gone.
 */
export async function startSupervised(options: SupervisedCommand): Promise<SupervisedProcess> {
  const { launcher, command, workingDir } = options;
  const [file = '', ...args] = [...launcher.prefix, 'sh', '-c', SUPERVISOR, 'sh', ...command];
  const child = spawn(file, args, {
    cwd: workingDir,
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
    env: programEnvironment(),
    ...launcher.spawnAs,
  });
  // Nothing is ever written; without a listener a broken pipe would end this process.
  child.stdin.on('error', ignore);
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
    options.onLine(line);
  });
  const pid = await readProgramPid(child, exited);
  return {
    pid,
    exited,
    signal(name) {
      if (alive) killIfThere(pid, name);
    },
    async lastLines() {
      await settlesWithin(closed, LATE_OUTPUT_MS);
      return lines.join('\n');
    },
  };
}

/** PG* variables of the caller must not change how our server runs. */
function programEnvironment(): NodeJS.ProcessEnv {
  const { PATH, TZ } = process.env;
  return { LC_ALL: 'C', ...(PATH && { PATH }), ...(TZ && { TZ }) };
}

function readProgramPid(
  child: { readonly stdout: Readable; once(event: 'error', listener: (e: Error) => void): unknown },
  exited: Promise<unknown>,
): Promise<number> {
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

function ignore(): void {}
