// `npm test`: makes the checkout ready, runs the checks, then all tests. Arguments go to vitest
// (`npm test -- --dir packages/turngate`), and then the checks are left out.
// The last line is "N passed, N failed" or "N passed, N failed, N skipped".
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bootstrap } from './lib/bootstrap.mjs';
import { root } from './lib/paths.mjs';

const vitestArgs = process.argv.slice(2);
const checks = join(root, 'scripts', 'check.mjs');

await bootstrap();
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
  const dir = mkdtempSync(join(tmpdir(), 'turngate-test-'));
  const reportFile = join(dir, 'report.json');
  try {
    const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${reportFile}`];
    const code = await runNode([vitest, 'run', ...reporters, ...vitestArgs], testEnvironment());
    return count(reportFile, code);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** In CI a test may not be skipped because a server is missing. */
function testEnvironment() {
  return process.env.CI ? { ...process.env, TURNGATE_REQUIRE_SERVERS: '1' } : process.env;
}

function count(reportFile, code) {
  if (!existsSync(reportFile)) return { passed: 0, failed: 1, skipped: 0 };
  const report = JSON.parse(readFileSync(reportFile, 'utf8'));
  // A file that could not be loaded has failed without a single failed test.
  const brokenFiles = report.testResults.filter(
    ({ status, assertionResults }) =>
      status === 'failed' && !assertionResults.some((result) => result.status === 'failed'),
  );
  const failed = report.numFailedTests + brokenFiles.length;
  return {
    passed: report.numPassedTests,
    // vitest also fails for reasons that belong to no test, such as an unhandled rejection.
    failed: code === 0 ? failed : Math.max(failed, 1),
    skipped: report.numPendingTests + report.numTodoTests,
  };
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
