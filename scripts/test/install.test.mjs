// Installing into a folder happens once for each package-lock.json, and what cannot be installed
// from the distribution is told and does not stop the run.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { aptInstall } from '../lib/apt.mjs';
import { installIn } from '../lib/install.mjs';

const { signal } = new AbortController();
const onPid = () => {};
const ARGS = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--silent'];

/** A package that depends on a folder of its own only, so that npm needs no registry. */
function smallPackage(t) {
  const dir = mkdtempSync(join(tmpdir(), 'turngate-install-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  mkdirSync(join(dir, 'inner'));
  writeFileSync(join(dir, 'inner', 'package.json'), JSON.stringify({ name: 'inner' }));
  lock(dir, '1.0.0');
  return dir;
}

function lock(dir, version) {
  const self = { name: 'outer', version, dependencies: { inner: 'file:inner' } };
  writeFileSync(join(dir, 'package.json'), JSON.stringify(self));
  const link = { resolved: 'inner', link: true };
  const packages = { '': self, inner: {}, 'node_modules/inner': link };
  const content = { name: 'outer', version, lockfileVersion: 3, packages };
  writeFileSync(join(dir, 'package-lock.json'), JSON.stringify(content));
}

test('a folder is finished once for each package-lock.json', async (t) => {
  const dir = smallPackage(t);
  let finished = 0;
  const finish = async () => void finished++;
  const install = () => installIn(dir, 'npm ci', ARGS, { signal, onPid, finish });
  await install();
  await install();
  assert.equal(finished, 1);
  lock(dir, '1.0.1');
  await install();
  assert.equal(finished, 2);
});

test('a folder that could not be finished is tried again', async (t) => {
  const dir = smallPackage(t);
  let attempts = 0;
  const finish = async () => {
    attempts++;
    if (attempts === 1) throw new Error('no compiler');
  };
  const install = () => installIn(dir, 'npm ci', ARGS, { signal, onPid, finish });
  await assert.rejects(install, /no compiler/);
  await install();
  await install();
  assert.equal(attempts, 2);
});

test('a machine that may not be changed is not changed', async (t) => {
  const before = process.env.TURNGATE_INSTALL;
  process.env.TURNGATE_INSTALL = '0';
  t.after(() => {
    if (before === undefined) delete process.env.TURNGATE_INSTALL;
    else process.env.TURNGATE_INSTALL = before;
  });
  assert.equal(await aptInstall(['no-such-package'], { signal, onPid }), false);
});
