import { TestServerError } from './test-server-error.ts';
import { sleep } from './waiting.ts';

const POLL_MS = 10;

/** @throws TestServerError `START_FAILED` when the condition does not hold within the time */
export async function until(
  what: string,
  limitMs: number,
  holds: () => Promise<boolean>,
): Promise<void> {
  const endMonoMs = performance.now() + limitMs;
  while (!(await holds())) {
    if (performance.now() > endMonoMs) {
      throw new TestServerError('START_FAILED', `not within ${limitMs} ms: ${what}`);
    }
    await sleep(POLL_MS);
  }
}
