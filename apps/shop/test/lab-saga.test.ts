/** The lab's storms of transactions across services: the right ones clean, each wrong one caught. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, inject, it } from 'vitest';

const entry = fileURLToPath(new URL('../dist/lab/main.js', import.meta.url));
const postgresUrl = inject('postgresUrl');

// Seconds on a quiet machine: each storm starts several processes anew.
it.skipIf(postgresUrl === '')(
  'npm run lab: barrier, TCC and SAGA against coordinators and participants without',
  { timeout: 300_000 },
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'turngate-lab-saga-'));
    try {
      const file = join(folder, 'lab.json');
      const args = [
        entry,
        '--quick',
        '--storm',
        'tcc-words,tcc-deaths,saga-returns',
        '--json',
        file,
      ];
      const env = { ...process.env, DATABASE_URL: postgresUrl };
      const { stdout } = await promisify(execFile)(process.execPath, args, { env });
      const { asTheory, contests } = JSON.parse(await readFile(file, 'utf8'));
      expect([asTheory, stdout]).toEqual([true, stdout]);
      const breaks = Object.fromEntries(
        contests.map(
          ({ scenario, contender, breaches }: Record<string, string> & { breaches: object }) => [
            `${scenario} ${contender}`,
            Object.entries(breaches).flatMap(([law, count]) => (count > 0 ? [law] : [])),
          ],
        ),
      );
      expect(breaks).toMatchObject({
        'tcc-words turngate': [],
        'tcc-words no-barrier': expect.arrayContaining(['twice']),
        'tcc-words guarded-holds': ['hanging'],
        'tcc-deaths turngate': [],
        'tcc-deaths from-the-start': expect.arrayContaining(['twice', 'abandoned']),
        'tcc-deaths status-first': expect.arrayContaining(['split', 'abandoned']),
        'saga-returns turngate': [],
        'saga-returns from-the-start': expect.arrayContaining(['twice', 'half']),
        'saga-returns done-only': expect.arrayContaining(['twice', 'held']),
      });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
);
