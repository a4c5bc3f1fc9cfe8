/** "Duplicate key", dug out of whatever wraps it: by code, never by class and never by wording. */
import { errorChain } from './error-chain.ts';

type Fields = Record<string, unknown>;

// ER_DUP_ENTRY, ER_DUP_UNIQUE, ER_DUP_ENTRY_WITH_KEY_NAME.
const mysqlErrnos = new Set<unknown>([1062, 1169, 1586]);
const mysqlCodes = new Set<unknown>([
  'ER_DUP_ENTRY',
  'ER_DUP_UNIQUE',
  'ER_DUP_ENTRY_WITH_KEY_NAME',
]);
// SQLITE_CONSTRAINT with UNIQUE, PRIMARYKEY, ROWID.
const sqliteErrcodes = new Set<unknown>([2067, 1555, 2579]);
const sqliteCodes = /^SQLITE_CONSTRAINT_(UNIQUE|PRIMARYKEY|ROWID)$/;

/**
 * Is it a violation of a unique constraint or primary key, of this one if it is named? Understands the
 * errors of pg, postgres.js, PGlite, mysql2, better-sqlite3 and node:sqlite, and what Drizzle, Knex,
 * Kysely, TypeORM, Sequelize, MikroORM and Prisma make of them.
 *
 * Name the constraint wherever the table has another one: a violation of that is a business matter,
 * not a repeat. What stands for a name: PostgreSQL the constraint, MySQL the index (`PRIMARY`), with or
 * without `table.` before it; SQLite the columns as it tells them (`table.column, table.column`); Prisma
 * what its adapter tells, which may be the fields (`a,b`). Letters count as they are written.
 *
 * Not promised: a name the error does not tell; then it is no match.
 */
export function isUniqueViolation(error: unknown, constraint?: string): boolean {
  let found = false;
  const names: string[] = [];
  for (const fields of errorChain(error)) {
    found ||= saysUnique(fields);
    names.push(...namesIn(fields));
  }
  if (!found || constraint === undefined) return found;
  return names.some((name) => name === constraint || name.endsWith(`.${constraint}`));
}

function saysUnique(fields: Fields): boolean {
  const { code, errno, errcode, originalCode } = fields;
  // A driver adapter of Prisma keeps the database's code as text, whatever the database.
  if ([code, originalCode].some((one) => one === '23505' || one === 'P2002')) return true;
  if (mysqlCodes.has(code) || mysqlErrnos.has(errno) || originalCode === '1062') return true;
  if (sqliteErrcodes.has(errcode) || sqliteErrcodes.has(Number(originalCode))) return true;
  return typeof code === 'string' && sqliteCodes.test(code);
}

/** Every name that one link of the chain tells. */
function* namesIn(fields: Fields): Generator<string> {
  for (const key of ['constraint', 'constraint_name']) {
    const told = fields[key];
    if (typeof told === 'string') yield told;
    else yield* prismaNames(told);
  }
  const target = (fields['meta'] as { target?: unknown } | undefined)?.target;
  if (typeof target === 'string') yield target;
  if (isTexts(target)) yield target.join(',');
  if (!saysUnique(fields)) return;
  // MySQL and SQLite tell the name in the message only, where values and other words surround it.
  for (const key of ['sqlMessage', 'message', 'originalMessage']) {
    const text = fields[key];
    if (typeof text === 'string') yield* namesInMessage(text);
  }
}

/** Prisma: `{fields: […]}`, `{index: "…"}`. */
function* prismaNames(told: unknown): Generator<string> {
  if (typeof told !== 'object' || told === null) return;
  const { fields, index } = told as Fields;
  if (typeof index === 'string') yield index;
  if (isTexts(fields)) yield fields.join(',').replaceAll('"', '');
}

function* namesInMessage(text: string): Generator<string> {
  // The value stands before the name and may hold anything, quotes too: only the end counts.
  const mysql = /'([^']+)'\s*$/.exec(text)?.[1];
  if (mysql !== undefined) yield mysql;
  const sqlite = /UNIQUE constraint failed: (.+)$/.exec(text)?.[1];
  if (sqlite !== undefined) yield sqlite;
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}
