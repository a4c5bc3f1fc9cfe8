/**
 * The claim under inbox, stock and barrier: insert first, then look who won. Never "look, then
 * insert", never a failing INSERT, never by how a driver counts rows.
 */
import type {
  SqlAnswer,
  SqlServer,
  SqlSession,
  SqlStep,
  SqlValue,
} from '../contract/sql-session.ts';
import { together } from '../contract/sql-together.ts';
import { sqlUpsert } from '../core/sql-text.ts';

/** A row to be claimed. */
export interface ClaimRow {
  readonly table: string;
  /** Column → value of the unique key. */
  readonly key: Readonly<Record<string, SqlValue>>;
  /** Other columns of a fresh row: values, or SQL text for what the database says itself. */
  readonly values: Readonly<Record<string, SqlValue | { readonly sql: string }>>;
  /** Unique to this attempt; column `token` keeps it, and whoever finds its own there has won. */
  readonly token: string;
  /** Columns to read back, as text; an expression has a name: `a - b AS left_ms`. */
  readonly read: readonly string[];
}

/** Who has it. The row is locked until the transaction ends, in both cases. */
export interface ClaimedRow {
  readonly ours: boolean;
  readonly row: Readonly<Record<string, string | null>>;
}

/**
 * Claims a row in the caller's transaction. While another transaction holds an uncommitted row of the
 * same key, it waits for its end. Run it early and at READ COMMITTED: at REPEATABLE READ PostgreSQL
 * answers 40001 when the other was faster, and the whole transaction has to be tried again.
 */
export async function insertFirst(sql: SqlSession, claim: ClaimRow): Promise<ClaimedRow> {
  return await claimedRow(sql, claim, await together(sql, claimSteps(sql, claim)));
}

/** What a claim sends, for who has more to send in the same trip. */
export function claimSteps(server: SqlServer, claim: ClaimRow): readonly SqlStep[] {
  const { table, key, token } = claim;
  const columns = { ...key, ...claim.values, token };
  const values: SqlValue[] = [];
  const places = Object.values(columns).map((value) => {
    if (isText(value)) return value.sql;
    values.push(value);
    return `$${values.length}`;
  });
  // A row that comes back is locked, and in MariaDB it may be the one that was in the way.
  const returning = server.returning ?? server.dialect !== 'mysql';
  const insert = {
    text: `INSERT INTO ${table} (${Object.keys(columns).join(', ')}) VALUES (${places.join(', ')})
     ${sqlUpsert(server.dialect, Object.keys(key), [])}
     ${returning ? `RETURNING ${columnsOf(claim)}` : ''}`,
    values,
  };
  return returning ? [insert] : [insert, readStep(server, claim)];
}

/** Who has it, by the answers to {@link claimSteps}; asks once more where they do not tell. */
export async function claimedRow(
  sql: SqlSession,
  claim: ClaimRow,
  answers: readonly SqlAnswer[],
): Promise<ClaimedRow> {
  let row = answers.at(-1)?.rows[0];
  if (row === undefined) {
    const [read] = await together(sql, [readStep(sql, claim)]);
    row = read?.rows[0] ?? [];
  }
  const [token, ...read] = row;
  const named = Object.fromEntries(
    claim.read.map((column, i) => [column.replace(/^.* AS /s, ''), read[i] ?? null]),
  );
  return { ours: token === claim.token, row: named };
}

/** A locking read: at REPEATABLE READ a plain one may not see the row that was in the way. */
function readStep({ dialect }: SqlServer, claim: ClaimRow): SqlStep {
  const { table, key } = claim;
  const forUpdate = dialect === 'sqlite' ? '' : 'FOR UPDATE';
  const where = Object.keys(key).map((column, i) => `${column} = $${i + 1}`);
  return {
    text: `SELECT ${columnsOf(claim)} FROM ${table} WHERE ${where.join(' AND ')} ${forUpdate}`,
    values: Object.values(key),
  };
}

function columnsOf({ read }: ClaimRow): string {
  return ['token', ...read].join(', ');
}

function isText(value: SqlValue | { readonly sql: string }): value is { readonly sql: string } {
  return typeof value === 'object' && value !== null && 'sql' in value;
}
