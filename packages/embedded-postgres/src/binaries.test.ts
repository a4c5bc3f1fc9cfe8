import { mkdir, readlink, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryDir } from '../test/helpers.ts';
import { findBinaries, repairLibraryLinks } from './binaries.ts';

test('creates the library links that a blocked install script left out', async () => {
  const packageDir = await temporaryDir();
  const lib = join(packageDir, 'native', 'lib');
  await mkdir(lib, { recursive: true });
  await writeFile(join(lib, 'liba.so.1.2'), '');
  await symlink('liba.so.1.2', join(lib, 'liba.so.1'));
  const links = ['liba.so', 'liba.so.1'].map((name) => ({
    source: 'native/lib/liba.so.1.2',
    target: `native/lib/${name}`,
  }));
  await writeFile(join(packageDir, 'native', 'pg-symlinks.json'), JSON.stringify(links));

  expect(repairLibraryLinks(packageDir)).toBe(1);
  expect(await readlink(join(lib, 'liba.so'))).toBe('liba.so.1.2');
  expect(repairLibraryLinks(packageDir)).toBe(0);
});

test('finds the programs of this platform', () => {
  expect(findBinaries().postgres).toMatch(/native\/bin\/postgres$/);
});
