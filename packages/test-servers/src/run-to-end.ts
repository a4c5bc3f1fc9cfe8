import { startSupervised } from './supervised-process.ts';
import { TestServerError } from './test-server-error.ts';
import { settlesWithin } from './waiting.ts';

/**
 * Runs a helper program to its end.
 *
 * @throws TestServerError `START_FAILED` unless it succeeds within the time
 */
export async function runToEnd(
  name: string,
  command: readonly string[],
  workingDir: string,
  limitMs: number,
): Promise<void> {
  const program = await startSupervised({ command, workingDir });
  const inTime = await settlesWithin(program.exited, limitMs);
  if (!inTime) program.signal('SIGKILL');
  const code = await program.exited;
  if (inTime && code === 0) return;
  const how = inTime ? `ended with code ${code}` : `did not end within ${limitMs} ms`;
  const log = await program.lastLines();
  throw new TestServerError('START_FAILED', `${name} ${how}; its last lines:\n${log}`);
}
