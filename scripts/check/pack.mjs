// `npm pack` of the library, as data and as an unpacked folder.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));
export const library = join(root, 'packages', 'turngate');
export const manifest = JSON.parse(readFileSync(join(library, 'package.json'), 'utf8'));

/** Paths in the tarball; with `destination` the tarball is also written there. */
export function pack(destination) {
  const where = destination ? ['--pack-destination', destination] : ['--dry-run'];
  const output = run('npm', ['pack', '--json', '--ignore-scripts', ...where], library);
  // npm 12 answers with an object by package name where npm 11 answers with an array.
  const [answer] = Object.values(JSON.parse(output));
  return { files: answer.files.map(({ path }) => path), tarball: answer.filename };
}

/** Unpacks the tarball as an installed package would lie there. */
export function installInto(folder) {
  const { tarball } = pack(folder);
  const target = join(folder, 'node_modules', manifest.name);
  mkdirSync(target, { recursive: true });
  run('tar', ['-xzf', tarball, '-C', target, '--strip-components=1'], folder);
  return target;
}

export function run(command, args, cwd) {
  const { status, error, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' });
  if (status === 0) return stdout;
  throw new Error(`${command} ${args.join(' ')} failed: ${error?.message ?? stderr}`);
}
