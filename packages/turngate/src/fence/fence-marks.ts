/** Marks in a table of their own: for resources that are no single row. */
import type { SqlDialect, SqlSession } from '../contract/sql-session.ts';
import { knownOptions } from '../core/option.ts';
import { checkFence, checkResource, staleError } from './fence-number.ts';
import { boundFence, fenceText, forUpdate, quoteTable } from './sql-text.ts';

/** A resource and the fence of whoever wants to work on it. */
export interface FencedResource {
  /** What is protected, 1 to 255 bytes; usually the name of the lock. */
  readonly resource: string;
  readonly fence: bigint;
}

/** Marks beside the data, in the same database. */
export interface FenceMarks {
  /**
   * Raises the resource's mark to this fence and locks it until the transaction ends. Make it the
   * first statement of the transaction, before the first read.
   *
   * @throws FENCE_STALE when a newer holder has entered
   */
  enter(session: SqlSession, what: FencedResource): Promise<EnteredMark>;
  /**
   * Demands that this very fence entered last, and locks the mark until the transaction ends. For
   * receivers that cannot keep what `enter` returned, for example over HTTP.
   *
   * @throws FENCE_STALE when another fence has entered since, or this one never has
   */
  check(session: SqlSession, what: FencedResource): Promise<void>;
  /** The statement that creates the table; safe to repeat. Put it among your migrations. */
  createTable(dialect: SqlDialect): string;
}

/** A resource entered with a fence. */
export interface EnteredMark extends FencedResource {
  /**
   * Demands that the mark is still ours, in this later transaction, and locks it until that ends:
   * make it the first statement there. Inside the transaction that entered it changes nothing.
   *
   * @throws FENCE_STALE
   */
  check(session: SqlSession): Promise<void>;
}

/**
 * Marks in the table `turngate_fence (resource, fence)`, or the one named.
 *
 * Not promised: anything about writers that neither enter nor check. A row that is deleted forgets
 * its mark: never purge marks of resources whose locks are in use.
 *
 * @throws OPTION_INVALID for a bad name
 */
export function fenceMarks(options: { readonly table?: string } = {}): FenceMarks {
  knownOptions('fenceMarks()', options, ['table']);
  const { table = 'turngate_fence' } = options;
  quoteTable(table, 'postgres'); // Checks the name.
  const marks: FenceMarks = {
    async enter(session, what) {
      checkTarget(what);
      const { dialect } = session;
      const { rows } = await session.query(raiseText(table, dialect), [
        what.resource,
        String(what.fence),
      ]);
      // Elsewhere the statement cannot return what it left behind.
      if (dialect !== 'postgres') await demand(session, table, what);
      else if (rows.length === 0) await refuse(session, table, what);
      return { ...what, check: (later) => marks.check(later, what) };
    },
    async check(session, what) {
      checkTarget(what);
      if (session.dialect === 'sqlite') {
        // A read takes no write lock: another connection could enter before the commit.
        const touch = `UPDATE ${quoteTable(table, 'sqlite')} SET fence = fence WHERE resource = $1`;
        await session.query(touch, [what.resource]);
      }
      await demand(session, table, what);
    },
    createTable: (dialect) => createText(table, dialect),
  };
  return marks;
}

function checkTarget({ resource, fence }: FencedResource): void {
  checkResource(resource);
  checkFence(fence);
}

async function demand(session: SqlSession, table: string, what: FencedResource): Promise<void> {
  const { dialect } = session;
  const text = `SELECT ${fenceText('fence', dialect)} AS mark FROM ${quoteTable(table, dialect)}
    WHERE resource = $1${forUpdate(dialect)}`;
  const mark = (await session.query(text, [what.resource])).rows[0]?.['mark'];
  if (mark === String(what.fence)) return;
  const seen = typeof mark === 'string' ? BigInt(mark) : undefined;
  throw staleError(`"${what.resource}"`, what.fence, seen);
}

async function refuse(session: SqlSession, table: string, what: FencedResource): Promise<never> {
  await demand(session, table, what);
  throw staleError(`"${what.resource}"`, what.fence, undefined);
}

function raiseText(table: string, dialect: SqlDialect): string {
  const name = quoteTable(table, dialect);
  const insert = `INSERT INTO ${name} (resource, fence) VALUES ($1, ${boundFence(2, dialect)})`;
  if (dialect === 'mysql') {
    return `${insert} ON DUPLICATE KEY UPDATE fence = GREATEST(fence, VALUES(fence))`;
  }
  const raise = `ON CONFLICT (resource) DO UPDATE SET fence = excluded.fence
    WHERE ${name}.fence <= excluded.fence`;
  return `${insert} ${raise}${dialect === 'postgres' ? ' RETURNING resource' : ''}`;
}

function createText(table: string, dialect: SqlDialect): string {
  const name = quoteTable(table, dialect);
  const columns = {
    postgres: 'resource text PRIMARY KEY, fence bigint NOT NULL',
    // Binary comparison: other collations take "a" and "A" for one resource.
    mysql: `resource varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY,
      fence bigint NOT NULL`,
    sqlite: 'resource text PRIMARY KEY, fence integer NOT NULL',
  };
  return `CREATE TABLE IF NOT EXISTS ${name} (${columns[dialect]})`;
}
