/** Every example runs as a process of its own and must prove its claim. */
import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, inject, it } from 'vitest';

const run = promisify(execFile);
const folder = fileURLToPath(new URL('..', import.meta.url));
const examples = readdirSync(folder).filter((name) => name.endsWith('.mjs'));
const url = inject('postgresUrl');

describe.skipIf(url === '')('examples', () => {
  it('are found', () => {
    expect(examples).toContain('readme.mjs');
  });

  for (const name of examples) {
    it(`${name} proves its claim`, async () => {
      const env = { ...process.env, DATABASE_URL: url };
      // Rejects, with what the example printed, for any exit code but 0.
      const { stdout } = await run(process.execPath, [name], { cwd: folder, env });
      expect(stdout).not.toBe('');
    });
  }
});
