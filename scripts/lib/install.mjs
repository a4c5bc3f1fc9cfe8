import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './paths.mjs';
import { runStep } from './steps.mjs';

const lockFile = join(root, 'package-lock.json');
const modules = join(root, 'node_modules');
const stampFile = join(modules, '.turngate-stamp');

/** Names the package-lock.json and the Node version, as "hash version". */
function wantedStamp() {
  const hash = createHash('sha256').update(readFileSync(lockFile)).digest('hex');
  return `${hash} ${process.version}`;
}

function foundStamp() {
  return existsSync(stampFile) ? readFileSync(stampFile, 'utf8') : undefined;
}

/** True when `node_modules` was installed from this package-lock.json by this Node version. */
function isInstalled() {
  return foundStamp() === wantedStamp();
}

/** Brings `node_modules` in line with package-lock.json. Call it under the bootstrap lock. */
export async function installDependencies({ signal, onPid }) {
  if (isInstalled()) return;
  if (installedByOtherNode() || !matchesLockFile()) {
    rmSync(stampFile, { force: true });
    const args = ['ci', '--no-audit', '--no-fund'];
    await runStep('npm ci (the first time takes a minute)', 'npm', args, {
      cwd: root,
      signal,
      onPid,
    });
  }
  writeFileSync(stampFile, wantedStamp());
}

function installedByOtherNode() {
  return !(foundStamp()?.endsWith(` ${process.version}`) ?? true);
}

/**
 * True when somebody ran `npm install` by hand, so that there is nothing to do. npm writes its
 * list of installed packages last, so an interrupted installation has none.
 */
function matchesLockFile() {
  const listFile = join(modules, '.package-lock.json');
  if (!existsSync(listFile)) return false;
  const installed = JSON.parse(readFileSync(listFile, 'utf8')).packages;
  const wanted = JSON.parse(readFileSync(lockFile, 'utf8')).packages;
  return Object.entries(wanted).every(([path, { version, optional }]) => {
    if (!path.includes('node_modules/') || optional) return true;
    return path in installed && installed[path].version === version;
  });
}
