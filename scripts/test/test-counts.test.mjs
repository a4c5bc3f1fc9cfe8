import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { countRun, secondChance } from '../lib/test-counts.mjs';

const passed = { status: 'passed', failureMessages: [] };
const failedBy = (...failureMessages) => ({ status: 'failed', failureMessages });
const late = failedBy('Error: gave up waiting until it is free\n    at until');
const lost = failedBy('AssertionError: expected 2 to be 1');
const file = (name, ...tests) => {
  const failed = tests.length === 0 || tests.some(({ status }) => status === 'failed');
  return { name, status: failed ? 'failed' : 'passed', tests };
};

const none = { files: [], rounds: 0 };

const chance = (code, results, origins = []) =>
  secondChance({
    code,
    results,
    unhandled: origins.map((file) => ({ file, message: 'Error: x' })),
  });

describe('which files run again', () => {
  it('once, those that only gave up waiting', () => {
    const timedOut = failedBy('Error: Test timed out in 120000ms.\nIf this is');
    const results = [file('a', passed, late), file('b', passed), file('c', timedOut)];
    assert.deepEqual(chance(1, results), { files: ['a', 'c'], rounds: 1 });
  });

  it('three times, when an assertion failed in any of them', () => {
    const expected = (...files) => ({ files, rounds: 3 });
    const two = [file('a', late), file('b', lost)];
    assert.deepEqual(chance(1, two), expected('a', 'b'));
    assert.deepEqual(chance(1, [file('a', late, lost)]), expected('a'));
  });

  it('none when a file could not be loaded, and none when many have failed', () => {
    assert.deepEqual(chance(1, [file('a', late), file('broken')]), none);
    const four = ['a', 'b', 'c', 'd'].map((name) => file(name, late));
    assert.deepEqual(chance(1, four), none);
  });

  it('none when an error that nobody caught came from another file', () => {
    const results = [file('a', late), file('b', passed)];
    assert.deepEqual(chance(1, results, ['a']), { files: ['a'], rounds: 1 });
    assert.deepEqual(chance(1, results, ['a', 'b']), none);
    assert.deepEqual(chance(1, results, [null]), none);
  });

  it('none when nothing has failed, or nothing that is a test', () => {
    assert.deepEqual(chance(0, [file('a', passed)]), none);
    assert.deepEqual(chance(1, [file('a', passed)]), none);
  });
});

describe('what is counted', () => {
  it('a file that could not be loaded and a run that failed beside its tests', () => {
    const counts = { passed: 1, failed: 2, skipped: 0 };
    assert.deepEqual(countRun([file('a', passed, lost), file('broken')], 1), counts);
    assert.equal(countRun([file('a', passed)], 1).failed, 1);
    assert.equal(countRun([], 1).failed, 1);
  });
});
