// A reporter of vitest: the errors of a run that no test has caught, which its JSON report leaves out.
import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import { root } from './paths.mjs';

export default class UnhandledReporter {
  /** Writes the file that each of them came from, null where vitest does not know, and its message. */
  onTestRunEnd(_modules, errors) {
    const file = process.env.TURNGATE_UNHANDLED_FILE;
    if (file === undefined) return;
    const told = ({ VITEST_TEST_PATH: path, name, message }) => ({
      file: path ? relative(root, path) : null,
      message: `${name}: ${String(message).split('\n')[0]}`,
    });
    writeFileSync(file, JSON.stringify(errors.map(told)));
  }
}
