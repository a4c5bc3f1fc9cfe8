// `npm test`: makes the checkout ready, runs the checks, then all tests. Arguments go to vitest
// (`npm test -- --dir packages/turngate`), and then the checks are left out.
// A file with a failed test runs again, alone: once when the test only gave up waiting, three times
// when an assertion failed, and every run must pass. What broke stays red; what needed luck to break
// is told as unsteady at the end, with its first failure above.
// The last line is "N passed, N failed" or "N passed, N failed, N skipped".
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bootstrap } from './lib/bootstrap.mjs';
import { root } from './lib/paths.mjs';
import { countOf, countRun, resultsOf, secondChance } from './lib/test-counts.mjs';
import { installTestNeeds } from './lib/test-needs.mjs';

const vitestArgs = process.argv.slice(2);
const checks = join(root, 'scripts', 'check.mjs');

await bootstrap();
await installTestNeeds();
const failedChecks = vitestArgs.length === 0 && existsSync(checks) ? await runChecks() : 0;
const { passed, failed, skipped } = await runTests();
const skippedPart = skipped > 0 ? `, ${skipped} skipped` : '';
process.exitCode = failed + failedChecks > 0 ? 1 : 0;
console.log(`${passed} passed, ${failed + failedChecks} failed${skippedPart}`);

/** The checks count as one test when they fail. */
async function runChecks() {
  return (await runNode([checks])) === 0 ? 0 : 1;
}

async function runTests() {
  const first = await runVitest(vitestArgs);
  const { files, rounds } = secondChance(first);
  tellUnhandled(first);
  if (files.length === 0) return first.counts;
  const names = files.join(', ');
  let again = first;
  for (let round = 1; round <= rounds; round += 1) {
    console.log(`\nturngate: failed, run again alone (${round} of ${rounds}): ${names}\n`);
    again = await runVitest([...files, '--maxWorkers=1']);
    tellUnhandled(again);
    if (again.counts.failed > 0) break;
  }
  if (again.counts.failed === 0) console.log(`turngate: UNSTEADY, failed once: ${names}`);
  const { passed, skipped } = first.counts;
  const inFiles = countOf(first.results.filter(({ name }) => files.includes(name)));
  return {
    passed: passed - inFiles.passed + again.counts.passed,
    failed: again.counts.failed,
    skipped: skipped - inFiles.skipped + again.counts.skipped,
  };
}

/** Once more at the end, in one line each: above, an error is told with all that hangs on it. */
function tellUnhandled({ unhandled }) {
  for (const { file, message } of unhandled) {
    console.log(`turngate: an error that no test has caught, in ${file ?? 'no file'}: ${message}`);
  }
}

async function runVitest(args) {
  const dir = mkdtempSync(join(tmpdir(), 'turngate-test-'));
  const reportFile = join(dir, 'report.json');
  try {
    const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
    const unhandledFile = join(dir, 'unhandled.json');
    const unhandledReporter = join(root, 'scripts', 'lib', 'unhandled-reporter.mjs');
    const reporters = ['default', 'json', unhandledReporter].map((name) => `--reporter=${name}`);
    const env = { ...testEnvironment(), TURNGATE_UNHANDLED_FILE: unhandledFile };
    const output = `--outputFile.json=${reportFile}`;
    const code = await runNode([vitest, 'run', ...reporters, output, ...args], env);
    const results = resultsOf(reportFile, root);
    const unhandled = existsSync(unhandledFile) ? JSON.parse(readFileSync(unhandledFile)) : [];
    return { code, results, unhandled, counts: countRun(results, code) };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** In CI a test may not be skipped because a server is missing. */
function testEnvironment() {
  return process.env.CI ? { ...process.env, TURNGATE_REQUIRE_SERVERS: '1' } : process.env;
}

/** Exit code of a Node child; null when a signal ended it. */
function runNode(args, env = process.env) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd: root, env, stdio: 'inherit' });
    // Ctrl-C reaches the child from the terminal, and a second one would make vitest skip its
    // teardown.
    const forward = (name) => {
      if (name !== 'SIGINT' || !process.stdin.isTTY) child.kill(name);
    };
    for (const name of ['SIGINT', 'SIGTERM']) process.on(name, forward);
    child.once('error', reject);
    child.once('exit', (code) => {
      for (const name of ['SIGINT', 'SIGTERM']) process.off(name, forward);
      resolve(code);
    });
  });
}
