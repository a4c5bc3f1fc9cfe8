import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { query, temporaryDir } from '../test/helpers.ts';
import { startEmbeddedPostgres } from './index.ts';
import { firstBlocked } from './path-access.ts';

const isRoot = process.getuid?.() === 0;
if (!isRoot) console.warn('SKIPPED: the tests of starting as root need root');

const NOBODY = { uid: 65534, gid: 65534 };

test.skipIf(!isRoot)('runs as root below a directory that only root may pass', async () => {
  const closed = await temporaryDir();
  await chmod(closed, 0o700);
  const dataDir = join(closed, 'deep', 'data');
  await mkdir(dataDir, { recursive: true });
  expect(firstBlocked(dataDir, NOBODY)).toBe(closed);

  for (const round of ['create', 'reopen']) {
    const server = await startEmbeddedPostgres({ dataDir, initNoSync: true });
    onTestFinished(() => server.stop('immediate'));
    expect(await query(server.url, `select '${round}' as round`)).toEqual([{ round }]);
    await server.stop();
  }
});

test('names the outermost directory that is in the way', async () => {
  const open = await temporaryDir();
  await chmod(open, 0o755);
  const closed = join(open, 'closed');
  const inner = join(closed, 'inner');
  await mkdir(inner, { recursive: true });
  await chmod(inner, 0o700);
  await chmod(closed, 0o750);
  const stranger = { uid: 61_234, gid: 61_234 };
  expect(firstBlocked(open, stranger)).toBe(undefined);
  expect(firstBlocked(inner, stranger)).toBe(closed);
});
