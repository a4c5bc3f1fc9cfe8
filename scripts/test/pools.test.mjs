import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { root } from '../lib/paths.mjs';

// pg.Pool throws what an idle connection says last, unless somebody listens: a server that stops, or a
// dropped database, then ends the process, and `end()` does not wait for its connections to be gone.
it('every pg.Pool has a listener for the errors of idle connections', () => {
  const listed = execFileSync('git', ['ls-files', '*.ts', '*.mjs'], {
    cwd: root,
    encoding: 'utf8',
  });
  const made = /const (\w+) = new (?:pg\.)?Pool\(/g;
  const deaf = listed
    .split('\n')
    .filter((path) => path !== '' && path !== 'scripts/test/pools.test.mjs')
    .flatMap((path) => {
      const text = readFileSync(join(root, path), 'utf8');
      const pools = text.split(/new (?:pg\.)?Pool\(/).length - 1;
      const heard = [...text.matchAll(made)].filter(([, name]) =>
        text.includes(`${name}.on('error'`),
      );
      return heard.length === pools ? [] : [path];
    });
  assert.deepEqual(deaf, []);
});
