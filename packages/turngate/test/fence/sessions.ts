/** SQL sessions over the bare drivers, so that fences are tested without any store. */
import { createRequire } from 'node:module';
import type { PoolConnection, ResultSetHeader } from 'mysql2/promise';
import type { SqlSession, SqlValue } from '../../src/contract/index.ts';

/** `$1` to `?`, values in the order of the text. */
function positional(text: string, values: readonly SqlValue[]): [string, SqlValue[]] {
  const ordered: SqlValue[] = [];
  const rewritten = text.replace(/\$(\d+)/g, (_, place: string) => {
    ordered.push(values[Number(place) - 1] as SqlValue);
    return '?';
  });
  return [rewritten, ordered];
}

export function mysqlSession(connection: PoolConnection): SqlSession {
  return {
    dialect: 'mysql',
    async query(text, values) {
      const [result] = await connection.query(...positional(text, values));
      return Array.isArray(result)
        ? { rows: result as Record<string, unknown>[], affectedRows: 0 }
        : { rows: [], affectedRows: (result as ResultSetHeader).affectedRows };
    },
  };
}

/** The part of better-sqlite3 the tests use. */
export interface Sqlite {
  exec(text: string): void;
  close(): void;
  prepare(text: string): {
    readonly reader: boolean;
    all(...values: SqlValue[]): Record<string, unknown>[];
    run(...values: SqlValue[]): { changes: number };
  };
}

/** Undefined where the native module is not built. */
export function openSqlite(path: string): Sqlite | undefined {
  const require = createRequire(new URL('../../../../compat/package.json', import.meta.url));
  try {
    return new (require('better-sqlite3') as new (path: string) => Sqlite)(path);
  } catch (error) {
    console.warn(`no better-sqlite3: ${(error as Error).message.split('\n')[0]}`);
    return undefined;
  }
}

export function sqliteSession(db: Sqlite): SqlSession {
  return {
    dialect: 'sqlite',
    async query(text, values) {
      const [rewritten, ordered] = positional(text, values);
      const statement = db.prepare(rewritten);
      if (statement.reader) return { rows: statement.all(...ordered), affectedRows: 0 };
      return { rows: [], affectedRows: statement.run(...ordered).changes };
    },
  };
}
