// Loads what the rules look at: parsed files of the library and its users, and the package facts.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { listFiles, readSource } from './source.mjs';

export const LIBRARY = 'packages/turngate';
export const SRC = `${LIBRARY}/src`;

/**
 * `library`: packages/turngate/src · `consumers`: everything that uses the library from outside
 * (apps with their tests, bench, examples, code files in docs) · `others`: the TypeScript of apps
 * and of the other packages, which keeps to the same lengths and has no cycles either.
 */
export function loadHouse(root, { arrows, nodeModules, limits }) {
  const manifest = readJson(root, `${LIBRARY}/package.json`) ?? {};
  const library = listFiles(root, SRC).map((path) => readSource(root, path));
  const consumers = ['apps', 'bench', 'examples', 'docs']
    .flatMap((folder) => listFiles(root, folder))
    .map((path) => readSource(root, path));
  const packages = listFiles(root, 'packages')
    .filter((path) => /^packages\/[^/]+\/src\//.test(path) && !path.startsWith(`${SRC}/`))
    .map((path) => readSource(root, path));
  const apps = consumers.filter(({ path }) => /^apps\/[^/]+\/src\//.test(path));
  const others = [...packages, ...apps];
  const fileCount = library.length + consumers.length + packages.length;
  return { root, arrows, nodeModules, limits, manifest, library, consumers, others, fileCount };
}

function readJson(root, path) {
  const absolute = join(root, path);
  return existsSync(absolute) ? JSON.parse(readFileSync(absolute, 'utf8')) : undefined;
}

/** Every folder below the library's src, as `stores/redis`, parents included. */
export function libraryFolders(root, folder = '') {
  const absolute = join(root, SRC, folder);
  if (!existsSync(absolute)) return [];
  return readdirSync(absolute, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name }) => {
      const path = folder === '' ? name : `${folder}/${name}`;
      return [path, ...libraryFolders(root, path)];
    });
}
