/** What operators and clean-up jobs do to records, in any SQL database. */
import type {
  AlongWith,
  DropResults,
  ListedRecord,
  RecordAdmin,
  RecordFilter,
  RecordPage,
} from '../../contract/record-store.ts';
import type { SqlDatabase, SqlSession, SqlValue } from '../../contract/sql-session.ts';
import { integerOption, optionError } from '../../core/option.ts';
import type { RecordId } from '../../core/record-id.ts';
import type { RecordLayout } from './record-layouts.ts';
import { asText } from './staged-rows.ts';

const finished = "state IN ('done', 'refused')";

/** The port over the database the records are in. */
export function sqlRecordAdmin(
  database: SqlDatabase,
  layout: RecordLayout,
  toError: (error: unknown) => unknown,
): RecordAdmin {
  const typed = async <T>(call: Promise<T>): Promise<T> => {
    try {
      return await call;
    } catch (error) {
      throw toError(error);
    }
  };
  return {
    list: (filter) => typed(listRecords(database, layout, filter)),
    remove: (id, also) =>
      typed(database.transaction((session) => removeRecord(session, layout, id, also))),
    dropResults: (batch) =>
      typed(database.transaction((session) => dropBatch(session, layout, batch))),
  };
}

/** A statement under construction: values by number. */
class Values {
  readonly list: SqlValue[] = [];
  add(value: SqlValue): string {
    this.list.push(value);
    return `$${this.list.length}`;
  }
  row(values: readonly SqlValue[]): string {
    return `(${values.map((value) => this.add(value)).join(', ')})`;
  }
}

async function listRecords(
  database: SqlDatabase,
  layout: RecordLayout,
  filter: RecordFilter,
): Promise<RecordPage> {
  const limit = integerOption('limit', filter.limit, { min: 1, max: 1_000, fallback: 100 });
  const { operation, scope, key, state, sinceMs, beforeMs, after } = filter;
  const values = new Values();
  const conditions = [finished];
  const equal = (column: string, text: string | undefined): void => {
    if (text !== undefined) conditions.push(`${column} = ${values.add(layout.bind(text))}`);
  };
  if (operation !== undefined && scope !== undefined && key !== undefined) {
    conditions.push(isOne(layout, { operation, scope, key }, values));
  }
  equal('operation', operation);
  equal('scope', scope);
  equal(layout.key, key);
  equal('state', state);
  if (sinceMs !== undefined)
    conditions.push(`${layout.firstMs} >= ${timeOption('sinceMs', sinceMs)}`);
  if (beforeMs !== undefined) {
    conditions.push(`${layout.firstMs} < ${timeOption('beforeMs', beforeMs)}`);
  }
  if (after !== undefined) conditions.push(isAfter(layout, after, values));
  const columns = [
    `operation, scope, ${layout.key} AS record_key, state, fingerprint, owner`,
    `${layout.resultBytes} AS result_bytes, ${layout.firstMs} AS first_ms`,
    `${layout.expiresMs} AS expires_ms, ${layout.now} AS now_at`,
  ];
  const order = layout.order.map((column, i) => `${column} AS order_${i}`);
  const text = `SELECT ${[...columns, ...order].join(', ')} FROM turngate_record
  WHERE ${conditions.join(' AND ')} ORDER BY ${layout.order.join(', ')} LIMIT ${limit}`;
  const { rows } = await database.query(text, values.list);
  const last = rows.length === limit ? rows.at(-1) : undefined;
  return { records: rows.map(listedOf), cursor: last && cursorOf(layout, last) };
}

async function removeRecord(
  session: SqlSession,
  layout: RecordLayout,
  id: RecordId,
  also: AlongWith | undefined,
): Promise<boolean> {
  const values = new Values();
  // By state too: a placeholder of work in a caller's transaction is nobody's to remove.
  const text = `FROM turngate_record WHERE ${isOne(layout, id, values)} AND ${finished}`;
  // Looked at first, because a DELETE would wait for that transaction.
  const seen = await session.query(`SELECT 1 AS seen ${text}`, values.list);
  if (seen.rows.length === 0) return false;
  const { affectedRows } = await session.query(`DELETE ${text}`, values.list);
  if (affectedRows === 0) return false;
  await also?.(session);
  return true;
}

async function dropBatch(
  session: SqlSession,
  layout: RecordLayout,
  { operation, olderThanMs, batchRows, after }: DropResults,
): Promise<{ readonly dropped: number; readonly cursor: string | undefined }> {
  const limit = integerOption('batchRows', batchRows, { min: 1, max: 10_000, fallback: 500 });
  const range = { min: 0, max: Number.MAX_SAFE_INTEGER, fallback: 0 };
  const ageMs = integerOption('olderThanMs', olderThanMs, range);
  const due = (values: Values): string => `state = 'done' AND ${layout.resultBytes} > 0
    AND operation = ${values.add(layout.bind(operation))}
    AND ${layout.firstMs} <= ${layout.now} - ${ageMs}`;
  const seen = new Values();
  const order = layout.order.map((column, i) => `${column} AS order_${i}`).join(', ');
  const flag = `CASE WHEN ${due(seen)} THEN 1 ELSE 0 END AS due`;
  const where: string[] = [];
  if (layout.operationFirst) where.push(`operation = ${seen.add(layout.bind(operation))}`);
  if (after !== undefined) where.push(isAfter(layout, after, seen));
  // A walk along the primary key: each batch reads as many rows as the one before, however many
  // results there are left to drop.
  const { rows } = await session.query(
    `SELECT ${order}, ${flag} FROM turngate_record
  ${where.length > 0 ? `WHERE ${where.join(' AND ')}` : ''}
  ORDER BY ${layout.order.join(', ')} LIMIT ${limit}`,
    seen.list,
  );
  const last = rows.length === limit ? rows.at(-1) : undefined;
  const cursor = last && cursorOf(layout, last);
  const ripe = rows.filter((row) => Number(row['due']) === 1);
  if (ripe.length === 0) return { dropped: 0, cursor };
  const values = new Values();
  const keys = ripe.map((row) =>
    values.row(layout.order.map((_, i) => layout.fromCursor(layout.toCursor(row[`order_${i}`])))),
  );
  // The condition again: the row may have been replaced since.
  const { affectedRows } = await session.query(
    `UPDATE turngate_record SET result = ''
  WHERE (${layout.order.join(', ')}) IN (${keys.join(', ')}) AND ${due(values)}`,
    values.list,
  );
  return { dropped: affectedRows, cursor };
}

function isOne(layout: RecordLayout, id: RecordId, values: Values): string {
  return `(${layout.order.join(', ')}) = ${values.row(layout.orderOf(id))}`;
}

function isAfter(layout: RecordLayout, cursor: string, values: Values): string {
  const parts = partsOf(cursor, layout.order.length).map(layout.fromCursor);
  return `(${layout.order.join(', ')}) > ${values.row(parts)}`;
}

function cursorOf(layout: RecordLayout, row: Record<string, unknown>): string {
  const parts = layout.order.map((_, i) => layout.toCursor(row[`order_${i}`]));
  return Buffer.from(JSON.stringify(parts)).toString('base64url');
}

function partsOf(cursor: string, count: number): string[] {
  try {
    const parts: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    const good = (part: unknown): boolean => typeof part === 'string';
    if (Array.isArray(parts) && parts.length === count && parts.every(good)) return parts;
  } catch {} // Refused below.
  throw optionError('cursor', 'the cursor of the page before', cursor);
}

function timeOption(name: string, value: number): number {
  return integerOption(name, value, { min: 0, max: Number.MAX_SAFE_INTEGER, fallback: 0 });
}

function listedOf(row: Record<string, unknown>): ListedRecord {
  const expiresAtMs = Number(row['expires_ms']);
  return {
    id: {
      operation: asText(row['operation']),
      scope: asText(row['scope']),
      key: asText(row['record_key']),
    },
    state: asText(row['state']) as ListedRecord['state'],
    fingerprint: asText(row['fingerprint']),
    owner: asText(row['owner']),
    resultBytes: Number(row['result_bytes']),
    firstProcessedAtMs: Number(row['first_ms']),
    expiresAtMs,
    expired: expiresAtMs <= Number(row['now_at']),
  };
}
