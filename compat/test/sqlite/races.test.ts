// biome-ignore-all lint/suspicious/noExplicitAny: better-sqlite3 brings no types.
import Database from 'better-sqlite3';
import { createGate } from 'turngate';
import { sqlite } from 'turngate/sqlite';
import { describe } from 'vitest';
import { raceLaws } from '../../../packages/turngate/test/facts/race-laws.ts';
import { open } from './support.ts';

describe('races on SQLite', () => {
  raceLaws(
    async () => {
      const { db, file } = await open('races.db');
      const handles: any[] = [db];
      return {
        store() {
          const handle = new Database(file);
          handles.push(handle);
          return sqlite(handle) as any;
        },
        effect: async (tx: any, line) => void tx.prepare('INSERT INTO effect VALUES (?)').run(line),
        lines: async () => db.prepare('SELECT line FROM effect').pluck().all(),
        close: async () => {
          for (const handle of handles) handle.close();
        },
      };
    },
    (records) => createGate({ records, memoryCharsMax: 0 }) as any,
  );
});
