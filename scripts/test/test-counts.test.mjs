import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { countRun, lateFiles } from '../lib/test-counts.mjs';

const passed = { status: 'passed', failureMessages: [] };
const failedBy = (...failureMessages) => ({ status: 'failed', failureMessages });
const late = failedBy('Error: gave up waiting until it is free\n    at until');
const lost = failedBy('AssertionError: expected 2 to be 1');
const file = (name, ...tests) => {
  const failed = tests.length === 0 || tests.some(({ status }) => status === 'failed');
  return { name, status: failed ? 'failed' : 'passed', tests };
};

describe('which files run a second time', () => {
  it('those that only gave up waiting', () => {
    const timedOut = failedBy('Error: Test timed out in 120000ms.\nIf this is');
    const results = [file('a', passed, late), file('b', passed), file('c', timedOut)];
    assert.deepEqual(lateFiles({ code: 1, results }), ['a', 'c']);
  });

  it('none once a law was broken, whoever else was late', () => {
    assert.deepEqual(lateFiles({ code: 1, results: [file('a', late), file('b', lost)] }), []);
    assert.deepEqual(lateFiles({ code: 1, results: [file('a', late, lost)] }), []);
  });

  it('none when a file could not be loaded, and none when many are late', () => {
    assert.deepEqual(lateFiles({ code: 1, results: [file('a', late), file('broken')] }), []);
    const four = ['a', 'b', 'c', 'd'].map((name) => file(name, late));
    assert.deepEqual(lateFiles({ code: 1, results: four }), []);
  });

  it('none when nothing has failed, or nothing that is a test', () => {
    assert.deepEqual(lateFiles({ code: 0, results: [file('a', passed)] }), []);
    assert.deepEqual(lateFiles({ code: 1, results: [file('a', passed)] }), []);
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
