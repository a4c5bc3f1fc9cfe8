// Installing Debian packages, when this process may.
import { spawnSync } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { runStep, say } from './steps.mjs';

const POLICY_FILE = '/usr/sbin/policy-rc.d';
/** Debian asks this file before it starts the service of a package, and 101 means "do not". */
const POLICY =
  '#!/bin/sh\n# Written by "npm test" of Turngate while it installs; delete me.\nexit 101\n';

/**
 * Installs packages in one command without starting their services, telling what it does. Returns
 * false, with the reason told, when it could not: that is no reason not to run the other tests.
 */
export async function aptInstall(packages, { signal, onPid }) {
  const command = `apt-get install ${packages.join(' ')}`;
  const obstacle = findObstacle();
  if (obstacle !== undefined) {
    say(`NOT INSTALLED, because ${obstacle}: ${packages.join(' ')}`);
    say(`  their tests are SKIPPED; as root on Debian: ${command}`);
    return false;
  }
  say(`installing for the tests: ${packages.join(' ')}`);
  const mustRemovePolicy = !existsSync(POLICY_FILE);
  if (mustRemovePolicy) writeFileSync(POLICY_FILE, POLICY, { mode: 0o755 });
  try {
    // RUNLEVEL 1 says the same to machines that do not ask the policy file.
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
    const wait = ['-o', 'DPkg::Lock::Timeout=120', '-qq'];
    await runStep('apt-get update', 'apt-get', [...wait, 'update'], { signal, onPid, env });
    const known = packages.filter(isKnown);
    const unknown = packages.filter((name) => !known.includes(name));
    if (unknown.length > 0) say(`this distribution has no package ${unknown.join(' ')}`);
    const args = [...wait, 'install', '-y', '--no-install-recommends', ...known];
    await runStep(`apt-get install (about a minute)`, 'apt-get', args, { signal, onPid, env });
    return unknown.length === 0;
  } catch (error) {
    signal.throwIfAborted();
    say(`NOT INSTALLED, their tests are SKIPPED: ${error.message}`);
    return false;
  } finally {
    if (mustRemovePolicy) rmSync(POLICY_FILE, { force: true });
  }
}

/** Why this process cannot install packages; undefined when it can. */
function findObstacle() {
  if (process.env.TURNGATE_INSTALL === '0') return 'TURNGATE_INSTALL is 0';
  if (process.getuid?.() !== 0) return 'this is not root';
  const hasApt = spawnSync('apt-get', ['--version'], { stdio: 'ignore' }).status === 0;
  return hasApt ? undefined : 'there is no apt-get';
}

/** One name that apt does not know would stop the installation of all. */
function isKnown(name) {
  return spawnSync('apt-cache', ['show', name], { stdio: 'ignore' }).status === 0;
}
