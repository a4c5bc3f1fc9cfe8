// What a run of vitest came to, from its JSON report.
import { existsSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';

const filesAgainMax = 3;
const lawRounds = 3;
const waited = /gave up waiting until|(Test|Hook) timed out in \d+ms/;

/** The files of a report with their tests; none when there is no report. */
export function resultsOf(reportFile, root) {
  if (!existsSync(reportFile)) return [];
  const { testResults } = JSON.parse(readFileSync(reportFile, 'utf8'));
  return testResults.map(({ name, status, assertionResults }) => ({
    name: relative(root, name),
    status,
    tests: assertionResults,
  }));
}

/** @param code exit code of vitest, which also fails for reasons that belong to no test */
export function countRun(results, code) {
  const counts = countOf(results);
  return code === 0 ? counts : { ...counts, failed: Math.max(counts.failed, 1) };
}

export function countOf(results) {
  const tests = results.flatMap((result) => result.tests);
  const count = (...statuses) => tests.filter(({ status }) => statuses.includes(status)).length;
  return {
    passed: count('passed'),
    failed: count('failed') + results.filter(isBroken).length,
    skipped: count('skipped', 'pending', 'todo', 'disabled'),
  };
}

/**
 * The failed files that run again, alone, and how often all of them must then pass: once when all
 * they did was to give up waiting, which a crowded machine can cause; `lawRounds` times when an
 * assertion failed. None when a file could not be loaded, an error came from elsewhere that no test
 * has caught, or too many files have failed.
 */
export function secondChance({ code, results, unhandled }) {
  const failedFiles = results.filter(({ status }) => status === 'failed');
  const none = { files: [], rounds: 0 };
  if (code !== 1 || failedFiles.length === 0 || failedFiles.some(isBroken)) return none;
  if (failedFiles.length > filesAgainMax) return none;
  const files = failedFiles.map(({ name }) => name);
  if (unhandled.some(({ file }) => !files.includes(file))) return none;
  const failures = failedFiles.flatMap(({ tests }) => tests.filter(isFailed));
  const onlyLate = failures.every(({ failureMessages }) =>
    failureMessages.every((text) => waited.test(text)),
  );
  return { files, rounds: onlyLate ? 1 : lawRounds };
}

/** A file that could not be loaded has failed without a single failed test. */
function isBroken({ status, tests }) {
  return status === 'failed' && !tests.some(isFailed);
}

function isFailed({ status }) {
  return status === 'failed';
}
