import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './paths.mjs';
import { runStep } from './steps.mjs';

/** Brings `node_modules` in line with package-lock.json. Call it under the bootstrap lock. */
export function installDependencies({ signal, onPid }) {
  const args = ['ci', '--no-audit', '--no-fund'];
  return installIn(root, 'npm ci (the first time takes a minute)', args, { signal, onPid });
}

/**
 * Brings `node_modules` of a directory in line with its package-lock.json.
 *
 * A stamp names the package-lock.json and the Node version that it was done for. `finish` is what
 * remains to be done for a new stamp.
 */
export async function installIn(dir, label, npmArgs, { signal, onPid, finish = async () => {} }) {
  const stampFile = join(dir, 'node_modules', '.turngate-stamp');
  const found = existsSync(stampFile) ? readFileSync(stampFile, 'utf8') : undefined;
  const hash = createHash('sha256').update(readFileSync(join(dir, 'package-lock.json')));
  const wanted = `${hash.digest('hex')} ${process.version}`;
  if (found === wanted) return;
  const byOtherNode = found !== undefined && !found.endsWith(` ${process.version}`);
  if (byOtherNode || !matchesLockFile(dir)) {
    rmSync(stampFile, { force: true });
    await runStep(label, 'npm', npmArgs, { cwd: dir, signal, onPid });
  }
  await finish();
  writeFileSync(stampFile, wanted);
}

/**
 * True when somebody ran `npm install` by hand, so that there is nothing to do. npm writes its
 * list of installed packages last, so an interrupted installation has none.
 */
function matchesLockFile(dir) {
  const listFile = join(dir, 'node_modules', '.package-lock.json');
  if (!existsSync(listFile)) return false;
  const installed = JSON.parse(readFileSync(listFile, 'utf8')).packages;
  const wanted = JSON.parse(readFileSync(join(dir, 'package-lock.json'), 'utf8')).packages;
  return Object.entries(wanted).every(([path, { version, optional }]) => {
    if (!path.includes('node_modules/') || optional) return true;
    return path in installed && installed[path].version === version;
  });
}
