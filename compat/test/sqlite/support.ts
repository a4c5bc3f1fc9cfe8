/** Files of SQLite in a folder that goes with the test file. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { migrate } from 'turngate/sqlite';
import { afterAll } from 'vitest';

export const folder = mkdtempSync(join(tmpdir(), 'turngate-sqlite-'));
afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));

/** A fresh file in WAL mode with Turngate's tables. */
export async function open(name: string) {
  const file = join(folder, name);
  const db = new Database(file);
  db.pragma('journal_mode = WAL');
  db.exec('CREATE TABLE effect (line TEXT NOT NULL) STRICT');
  await migrate(db);
  return { file, db };
}
