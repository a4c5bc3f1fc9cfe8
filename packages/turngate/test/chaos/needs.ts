/** Suites that start servers of their own. A missing program is a loud skip, and an error in CI. */
import { lookForProgram } from '@turngate/test-servers';
import { describe } from 'vitest';

/** `describe` for tests that need these programs. */
export function describeNeeding(
  programs: readonly string[],
  title: string,
  body: () => void,
): void {
  const missing = programs.filter((program) => lookForProgram(program) === undefined);
  if (missing.length > 0) {
    const why = `no ${missing.join(', ')} on this machine`;
    if (process.env['CI'] || process.env['TURNGATE_REQUIRE_SERVERS']) throw new Error(why);
    console.warn(`SKIPPED "${title}": ${why}`);
  }
  describe.skipIf(missing.length > 0)(title, body);
}
