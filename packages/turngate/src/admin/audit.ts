/** Who did what by hand: one line per act, kept in the database. */
import type { SqlDatabase, SqlSession, SqlValue } from '../contract/sql-session.ts';
import { integerOption, knownOptions, optionError } from '../core/option.ts';
import { sqlNowMs } from '../core/sql-text.ts';

/** What an act was done to. */
export type AuditTargetKind = 'record' | 'staged' | 'lock';

/** How an act ended. `asked` stays when the process died before the act answered. */
export type AuditOutcome = 'asked' | 'done' | 'missing' | 'refused' | 'failed';

/** One line. A lock has its name in `key`, and '' in `operation` and `scope`. */
export interface AuditLine {
  readonly id: string;
  readonly actor: string;
  /** Like `records.release`. */
  readonly act: string;
  readonly kind: AuditTargetKind;
  readonly operation: string;
  readonly scope: string;
  readonly key: string;
  readonly reason: string;
  /** What else was said: a step, a number of rows. Never a payload. */
  readonly detail: string;
  readonly outcome: AuditOutcome;
}

/** A line with its time, by the clock of the database. Epoch milliseconds. */
export interface AuditEntry extends AuditLine {
  readonly atMs: number;
}

/** Which lines to list, newest first. */
export interface AuditFilter {
  readonly actor?: string;
  readonly act?: string;
  readonly operation?: string;
  readonly key?: string;
  /** `cursor` of the page before. */
  readonly after?: string;
  /** 1 to 1_000. Default 100. */
  readonly limit?: number;
}

/** A page of lines; `cursor` is undefined on the last one. */
export interface AuditPage {
  readonly lines: readonly AuditEntry[];
  readonly cursor: string | undefined;
}

/** Where audit lines go. */
export interface AuditLog {
  /** Are its lines written in the transaction of an act, whose database it shares? */
  readonly joins: boolean;
  /** Adds a line; in the transaction of `session` where one is given. */
  write(line: AuditLine, session?: SqlSession): Promise<void>;
  /** Says how an act ended whose line was written before it. */
  settle(id: string, outcome: AuditOutcome, detail: string): Promise<void>;
  list(filter?: AuditFilter): Promise<AuditPage>;
}

/** Options of {@link sqlAudit}. */
export interface SqlAuditOptions {
  /**
   * Set it to true when records or staged operations live in *another* database than this one: a line
   * is then written before the act and settled after it, instead of in its transaction.
   *
   * @default false
   */
  readonly elsewhere?: boolean;
}

/**
 * The audit log in `turngate_audit`, which `turngate migrate` makes.
 *
 * @param database `postgresDatabase(client)` or `mysqlDatabase(pool)`: the one the records are in
 * @throws OPTION_INVALID before any I/O
 */
export function sqlAudit(database: SqlDatabase, options: SqlAuditOptions = {}): AuditLog {
  knownOptions('sqlAudit()', options, ['elsewhere']);
  if (typeof database?.transaction !== 'function') {
    throw optionError('database', 'a database, like postgresDatabase(pool)', database);
  }
  return {
    joins: options.elsewhere !== true,
    async write(line, session) {
      const { id, actor, act, kind, operation, scope, key, reason, detail, outcome } = line;
      const values = [id, actor, act, kind, operation, scope, key, reason, detail, outcome];
      await (session ?? database).query(
        `INSERT INTO turngate_audit (id, actor, act, target_kind, operation, scope, target_key, reason,
  detail, outcome, at_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, ${sqlNowMs[database.dialect]})`,
        values,
      );
    },
    async settle(id, outcome, detail) {
      const text = 'UPDATE turngate_audit SET outcome = $2, detail = $3 WHERE id = $1';
      await database.query(text, [id, outcome, detail]);
    },
    list: (filter = {}) => listLines(database, filter),
  };
}

/** An audit log in this process, for tests and single-process tools. Not durable. */
export function memoryAudit(wallMs: () => number = () => 0): AuditLog {
  const lines: AuditEntry[] = [];
  return {
    joins: true,
    async write(line) {
      lines.push({ ...line, atMs: wallMs() });
    },
    async settle(id, outcome, detail) {
      const at = lines.findIndex((line) => line.id === id);
      lines[at] = { ...(lines[at] as AuditEntry), outcome, detail };
    },
    async list({ after, limit, actor, act, operation, key } = {}) {
      const size = limitOf(limit);
      const wanted = lines.filter(
        (line) =>
          (actor ?? line.actor) === line.actor &&
          (act ?? line.act) === line.act &&
          (operation ?? line.operation) === line.operation &&
          (key ?? line.key) === line.key,
      );
      const newestFirst = wanted.toReversed();
      const from = after === undefined ? 0 : newestFirst.findIndex(({ id }) => id === after) + 1;
      const shown = newestFirst.slice(from, from + size);
      return { lines: shown, cursor: shown.length === size ? shown.at(-1)?.id : undefined };
    },
  };
}

async function listLines(database: SqlDatabase, filter: AuditFilter): Promise<AuditPage> {
  const limit = limitOf(filter.limit);
  const values: SqlValue[] = [];
  const conditions: string[] = [];
  const equal = (column: string, value: string | undefined): void => {
    if (value === undefined) return;
    values.push(value);
    conditions.push(`${column} = $${values.length}`);
  };
  equal('actor', filter.actor);
  equal('act', filter.act);
  equal('operation', filter.operation);
  equal('target_key', filter.key);
  if (filter.after !== undefined) {
    const [atMs, id] = placeOf(filter.after);
    values.push(id);
    conditions.push(`(at_ms < ${atMs} OR (at_ms = ${atMs} AND id < $${values.length}))`);
  }
  const where = conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : '';
  const { rows } = await database.query(
    `SELECT id, at_ms, actor, act, target_kind, operation, scope, target_key, reason, detail, outcome
  FROM turngate_audit ${where} ORDER BY at_ms DESC, id DESC LIMIT ${limit}`,
    values,
  );
  const lines = rows.map(entryOf);
  const last = lines.length === limit ? lines.at(-1) : undefined;
  return { lines, cursor: last && `${last.atMs}.${last.id}` };
}

function limitOf(limit: number | undefined): number {
  return integerOption('limit', limit, { min: 1, max: 1_000, fallback: 100 });
}

function placeOf(cursor: string): [number, string] {
  const [, atMs, id] = /^(\d{1,16})\.(.+)$/.exec(cursor) ?? [];
  if (id === undefined) throw optionError('cursor', 'the cursor of the page before', cursor);
  return [Number(atMs), id];
}

function entryOf(row: Record<string, unknown>): AuditEntry {
  const text = (column: string): string => {
    const value = row[column];
    return value instanceof Uint8Array ? Buffer.from(value).toString() : String(value);
  };
  return {
    id: text('id'),
    atMs: Number(row['at_ms']),
    actor: text('actor'),
    act: text('act'),
    kind: text('target_kind') as AuditTargetKind,
    operation: text('operation'),
    scope: text('scope'),
    key: text('target_key'),
    reason: text('reason'),
    detail: text('detail'),
    outcome: text('outcome') as AuditOutcome,
  };
}
