// Installs the packed library into an empty folder (no driver there) and loads every entry with
// import and with require(). A top-level await or an eager driver import fails here.
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { installInto, manifest, root, run } from './pack.mjs';

// One program in both module systems: load each entry, print `entry: sorted export names`.
const REPORT = `
const report = (entry, module) => {
  const names = Object.keys(module).filter((name) => !['default', 'module.exports'].includes(name));
  if (names.length === 0) throw new Error(entry + ' exports nothing');
  console.log(entry + ': ' + names.sort().join(' '));
};`;

const importProgram = (entries) =>
  entries.map((entry) => `report('${entry}', await import('${entry}'));`).join('\n');
const requireProgram = (entries) =>
  entries.map((entry) => `report('${entry}', require('${entry}'));`).join('\n');

const codeEntries = Object.entries(manifest.exports)
  .filter(([, target]) => typeof target !== 'string')
  .map(([entry]) => manifest.name + entry.slice(1));

/** Peers are the user's to install, so they are there; drivers are not peers and stay away. */
function linkPeers(folder) {
  for (const peer of Object.keys(manifest.peerDependencies ?? {})) {
    const source = join(root, 'node_modules', peer);
    const target = join(folder, 'node_modules', peer);
    if (!existsSync(source)) continue;
    mkdirSync(dirname(target), { recursive: true });
    symlinkSync(source, target);
  }
}

const folder = mkdtempSync(join(tmpdir(), 'turngate-require-'));
try {
  installInto(folder);
  linkPeers(folder);
  writeFileSync(join(folder, 'all.mjs'), `${REPORT}\n${importProgram(codeEntries)}`);
  writeFileSync(join(folder, 'all.cjs'), `${REPORT}\n${requireProgram(codeEntries)}`);
  const imported = run(process.execPath, ['all.mjs'], folder);
  const required = run(process.execPath, ['all.cjs'], folder);
  if (imported !== required) throw new Error(`differ\nimport:\n${imported}\nrequire:\n${required}`);
  console.log(`require: ${codeEntries.length} entries load both ways\n${imported}`);
} catch (error) {
  console.log(error.message);
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
