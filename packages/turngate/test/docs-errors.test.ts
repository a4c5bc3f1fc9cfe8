/** The documents say what the source says: error table and capabilities, compared both ways. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { PGlite } from '@electric-sql/pglite';
import postgresJs from 'postgres';
import { describe, expect, it } from 'vitest';
import { errorTable } from '../src/core/errors.ts';
import { memory } from '../src/stores/memory/index.ts';
import { postgres } from '../src/stores/postgres/index.ts';
import { createPool } from './support/postgres.ts';

/** Rows of the Markdown table whose first heading is `first`, as objects by heading. */
function tableOf(page: string, first: string): Record<string, string>[] {
  const text = readFileSync(new URL(`../../../docs/${page}`, import.meta.url), 'utf8');
  const lines = text.split('\n');
  const start = lines.findIndex((line) => line.split('|')[1]?.trim() === first);
  const end = lines.findIndex((line, i) => i > start && !line.startsWith('|'));
  const cells = (line: string): string[] =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim().replaceAll('`', ''));
  const headings = cells(lines[start]!);
  return lines
    .slice(start + 2, end)
    .map((line) => Object.fromEntries(cells(line).map((cell, i) => [headings[i], cell])));
}

describe('docs/errors.md', () => {
  it('has every code of the error table with its outcome, status and advice, and no other', () => {
    const documented = tableOf('errors.md', 'code');
    const source = Object.entries(errorTable).map(([code, row]) => ({
      code,
      outcome: row.outcome,
      'HTTP status': String(row.httpStatus),
      advice: row.advice.replaceAll('`', ''),
    }));
    expect(documented).toEqual(source);
  });
});

describe('docs/guarantees.md', () => {
  // None of these clients is connected: opening a store sends nothing.
  const pool = createPool('postgres://127.0.0.1:1/none');
  const sql = postgresJs({ max: 1 });

  // A PGlite by shape: its constructor would start a database, which takes seconds.
  const db = Object.assign(Object.create(PGlite.prototype), { waitReady: Promise.resolve() });

  it('has the capabilities of every record store, and no other', () => {
    const stores = {
      'memory()': memory(),
      'postgres(pg.Pool)': postgres(pool),
      'postgres(sql) of postgres.js': postgres(sql),
      'postgres(PGlite)': postgres(db),
    };
    const word = (value: boolean): string => (value ? 'yes' : 'no');
    const source = Object.entries(stores).map(([store, { capabilities }]) => ({
      store,
      ...Object.fromEntries(Object.entries(capabilities).map(([name, v]) => [name, word(v)])),
    }));
    expect(tableOf('guarantees.md', 'store')).toEqual(source);
  });

  it('has the capabilities of every lock store, and docs/stores-locks.md every law too', () => {
    const script = fileURLToPath(new URL('../../../scripts/lock-tables.mjs', import.meta.url));
    const { status, stdout, stderr } = spawnSync(process.execPath, [script], { encoding: 'utf8' });
    expect(`${stdout}${stderr}`).toMatch(/^lock tables: \d+ stores, 0 stale pages$/m);
    expect(status).toBe(0);
  });
});
