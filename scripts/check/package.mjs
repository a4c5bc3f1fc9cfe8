// What publint and attw do not ask: nothing but the product is in the tarball, nothing is installed
// with it, nothing runs on install, no entry is reachable by accident, nothing in dist is stale.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { library, manifest, pack } from './pack.mjs';

const PLAIN_FILES = new Set(['README.md', 'LICENSE', 'package.json']);
const INSTALL_SCRIPTS = ['preinstall', 'install', 'postinstall', 'prepare', 'prepublish'];

function findProblems() {
  const { files } = pack();
  return [
    ...files.filter((path) => !isProduct(path)).map((path) => `${path} must not be published`),
    ...[...PLAIN_FILES].filter((path) => !files.includes(path)).map((path) => `${path} is missing`),
    ...files.filter(isStale).map((path) => `${path} has no source any more: delete dist and build`),
    ...['dependencies', 'bundleDependencies', 'optionalDependencies']
      .filter((field) => Object.keys(manifest[field] ?? {}).length > 0)
      .map((field) => `package.json has ${field}: drivers are passed in, nothing is installed`),
    ...INSTALL_SCRIPTS.filter((name) => manifest.scripts?.[name]).map(
      (name) => `package.json has the install script "${name}": users with npm 12 cannot run it`,
    ),
    ...Object.entries(manifest.exports)
      .filter((entry) => JSON.stringify(entry).includes('*'))
      .map(([entry]) => `exports "${entry}" has a wildcard: list each entry`),
    ...Object.entries(manifest.exports).flatMap(missingTargets),
  ];
}

const isProduct = (path) =>
  PLAIN_FILES.has(path) || (path.startsWith('dist/') && !/\.test\.|\.tsbuildinfo$/.test(path));

/** True for an emitted file whose source was removed or renamed: tsc never cleans up. */
function isStale(path) {
  const emitted = /^dist\/(.*?)(\.d\.ts|\.js|\.d\.ts\.map|\.js\.map)$/.exec(path);
  if (emitted === null) return false;
  return !['.ts', '.tsx'].some((ending) => existsSync(join(library, 'src', emitted[1] + ending)));
}

function missingTargets([entry, target]) {
  const paths = typeof target === 'string' ? [target] : Object.values(target);
  return paths
    .filter((path) => !existsSync(join(library, path)))
    .map((path) => `exports "${entry}" points to ${path}, which the build did not make`);
}

const problems = findProblems();
for (const problem of problems) console.log(problem);
console.log(`package: ${problems.length} problems`);
process.exitCode = problems.length === 0 ? 0 : 1;
