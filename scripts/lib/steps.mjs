import { spawn } from 'node:child_process';

const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 };
const KILL_AFTER_MS = 5000;
const PROGRESS_EVERY_MS = 5000;

/** A step that ended badly; its own output has already said why. */
class StepFailed extends Error {}

/** Progress goes to standard error, so that the output of a program can be piped. */
export function say(text) {
  process.stderr.write(`turngate: ${text}\n`);
}

/**
 * Runs work that can be interrupted. On Ctrl-C or SIGTERM the signal given to the work is aborted,
 * and when the work has cleaned up, the process exits with the customary code.
 */
export async function interruptible(work) {
  const controller = new AbortController();
  let exitCode;
  const onSignal = (name) => {
    exitCode ??= EXIT_CODES[name];
    controller.abort(new StepFailed(`interrupted by ${name}`));
  };
  for (const name of Object.keys(EXIT_CODES)) process.on(name, onSignal);
  try {
    return await work(controller.signal);
  } catch (error) {
    if (exitCode === undefined && !(error instanceof StepFailed)) throw error;
    say(error.message);
    process.exit(exitCode ?? 1);
  } finally {
    for (const name of Object.keys(EXIT_CODES)) process.off(name, onSignal);
  }
}

/** Runs a command with its output on standard error; throws `StepFailed` unless it succeeds. */
export async function runStep(label, command, args, { cwd, env, signal, onPid = () => {} }) {
  signal.throwIfAborted();
  say(`${label} …`);
  const startMs = performance.now();
  const elapsed = () => `${((performance.now() - startMs) / 1000).toFixed(1)} s`;
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 2, 2] });
  const ended = new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, name) => resolve(code ?? name));
  });
  if (child.pid !== undefined) onPid(child.pid);
  const progress = setInterval(() => say(`${label} … ${elapsed()}`), PROGRESS_EVERY_MS);
  let killTimer;
  const stop = () => {
    child.kill('SIGTERM');
    killTimer = setTimeout(() => child.kill('SIGKILL'), KILL_AFTER_MS);
  };
  signal.addEventListener('abort', stop);
  try {
    const result = await ended;
    signal.throwIfAborted();
    if (result !== 0) throw new StepFailed(`${label} failed (${result})`);
    say(`${label}: done in ${elapsed()}`);
  } finally {
    clearInterval(progress);
    clearTimeout(killTimer);
    signal.removeEventListener('abort', stop);
  }
}
