import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { root } from './paths.mjs';
import { runStep } from './steps.mjs';

/** In the order in which they depend on each other. */
const PROJECTS = [
  'packages/embedded-postgres',
  'packages/test-servers',
  'packages/turngate',
  'apps/shop',
];
const SOURCE = /(?<!\.d|\.test)\.ts$/;
const EMITTED = ['.js', '.js.map', '.d.ts', '.d.ts.map'];

const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');

/** Compiles what has changed. SQL reaches dist through scripts/generate.mjs. */
export async function buildAll({ signal, onPid }) {
  let key = hash(['package-lock.json', 'tsconfig.base.json'].map((name) => join(root, name)));
  for (const name of PROJECTS) {
    const project = describe(name);
    if (project.sources.length === 0) continue;
    // A change in one project can break the types of the ones after it, so the keys are chained.
    key = hash(project.inputs, key);
    if (isBuilt(project, key)) continue;
    rmSync(project.stampFile, { force: true });
    const args = [tsc, '-p', project.dir];
    await runStep(`compile ${name}`, process.execPath, args, { cwd: root, signal, onPid });
    removeLeftovers(project);
    mkdirSync(dirname(project.stampFile), { recursive: true });
    writeFileSync(project.stampFile, key);
  }
}

function describe(name) {
  const dir = join(root, name);
  const src = join(dir, 'src');
  const sources = filesBelow(src).filter((file) => SOURCE.test(file));
  return {
    dir,
    src,
    dist: join(dir, 'dist'),
    sources,
    inputs: [join(dir, 'package.json'), join(dir, 'tsconfig.json'), ...sources],
    // Not in dist, which is published.
    stampFile: join(root, 'node_modules', '.turngate-build', name.replaceAll('/', '-')),
  };
}

function filesBelow(dir) {
  if (!existsSync(dir)) return [];
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .sort();
}

/** Contents count, not times: a checkout or a copy changes the times of everything. */
function hash(files, seed = '') {
  const sum = createHash('sha256').update(seed);
  for (const file of files) {
    sum.update(`\0${relative(root, file)}\0`).update(readFileSync(file));
  }
  return sum.digest('hex');
}

function isBuilt({ stampFile, sources, src, dist }, key) {
  if (!existsSync(stampFile) || readFileSync(stampFile, 'utf8') !== key) return false;
  const outputs = sources.map((file) => file.replace(SOURCE, '.js'));
  return outputs.every((file) => existsSync(join(dist, relative(src, file))));
}

/** Removes what was compiled from files that are gone: it would still be found by imports. */
function removeLeftovers({ sources, src, dist }) {
  const expected = new Set();
  for (const file of sources) {
    const stem = relative(src, file).replace(SOURCE, '');
    for (const ending of EMITTED) expected.add(stem + ending);
  }
  for (const file of filesBelow(dist)) {
    if (!expected.has(relative(dist, file))) rmSync(file, { force: true });
  }
}
