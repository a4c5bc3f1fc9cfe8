// `npm test`: makes the checkout ready, runs the checks, then all tests. Arguments go to vitest
// (`npm test -- --dir packages/turngate`), and then the checks are left out.
// A law that was broken is red at once. A test that only gave up waiting, which a crowded machine can
// cause, has its file run a second time, alone; such files are named, and the second run counts.
// The last line is "N passed, N failed" or "N passed, N failed, N skipped".
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bootstrap } from './lib/bootstrap.mjs';
import { root } from './lib/paths.mjs';
import { countOf, countRun, lateFiles, resultsOf } from './lib/test-counts.mjs';
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
  const late = lateFiles(first);
  if (late.length === 0) return first.counts;
  console.log(`\nturngate: gave up waiting, run a second time alone: ${late.join(', ')}\n`);
  const second = await runVitest(late);
  console.log(`turngate: ${late.length} of the files needed a second run: ${late.join(', ')}`);
  const { passed, skipped } = first.counts;
  const inLate = countOf(first.results.filter(({ name }) => late.includes(name)));
  return {
    passed: passed - inLate.passed + second.counts.passed,
    failed: second.counts.failed,
    skipped: skipped - inLate.skipped + second.counts.skipped,
  };
}

async function runVitest(args) {
  const dir = mkdtempSync(join(tmpdir(), 'turngate-test-'));
  const reportFile = join(dir, 'report.json');
  try {
    const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${reportFile}`];
    const code = await runNode([vitest, 'run', ...reporters, ...args], testEnvironment());
    const results = resultsOf(reportFile, root);
    return { code, results, counts: countRun(results, code) };
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
