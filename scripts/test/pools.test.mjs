import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { root } from '../lib/paths.mjs';
import { listFiles } from '../tidy/source.mjs';

const FOLDERS = ['apps', 'bench', 'compat', 'examples', 'packages'];
const MADE = /new (?:pg\.)?Pool\(/g;
const NAMED = /const (\w+) = new (?:pg\.)?Pool\(/g;

// pg.Pool throws what an idle connection says last, unless somebody listens: a server that stops, or a
// dropped database, then ends the process, and `end()` does not wait for its connections to be gone.
it('every pg.Pool has a listener for the errors of idle connections', () => {
  const paths = FOLDERS.flatMap((folder) => listFiles(root, folder));
  const deaf = paths.filter((path) => {
    const text = readFileSync(join(root, path), 'utf8');
    const heard = [...text.matchAll(NAMED)].filter(([, name]) =>
      text.includes(`${name}.on('error'`),
    );
    return heard.length < [...text.matchAll(MADE)].length;
  });
  assert.ok(paths.length > 500, `${paths.length} files looked at`);
  assert.deepEqual(deaf, []);
});
