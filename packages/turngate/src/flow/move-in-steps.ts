/**
 * A transition on databases where one statement cannot do it all (MySQL, MariaDB, SQLite: no
 * data changes in WITH): lock the row, decide, move it, note it. The row lock makes the steps one.
 */
import type { SqlSession, SqlValue } from '../contract/sql-session.ts';
import { TurngateError } from '../core/errors.ts';
import { type FlowPlan, quoteIdentifier } from './definition.ts';

/** The words that differ. SQLite has one writer at a time, and takes MySQL's backquotes. */
const words = {
  mysql: { text: 'CHAR', lock: 'FOR UPDATE', now: 'UTC_TIMESTAMP(6)' },
  sqlite: { text: 'TEXT', lock: '', now: "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')" },
} as const;

/** What a move found: the state before, and the version after it if it moved. */
export interface Seen<State extends string> {
  readonly current: State;
  readonly version: bigint | undefined;
}

/** Moves the row if its state allows; what it found, or undefined when there is no such row. */
export async function moveInSteps<State extends string, Event extends string>(
  plan: FlowPlan<State, Event>,
  event: Event,
  session: SqlSession,
  id: string,
  set: Readonly<Record<string, SqlValue>>,
): Promise<Seen<State> | undefined> {
  const { table, id: key, state, version } = inBackquotes(plan);
  const { text, lock, now } = words[session.dialect === 'sqlite' ? 'sqlite' : 'mysql'];
  // A locking read sees the newest row, however old the transaction's snapshot is.
  const { rows } = await session.query(
    `SELECT ${state} AS current, CAST(${version} AS ${text}) AS version, CAST(${key} AS ${text}) AS id
     FROM ${table} WHERE ${key} = $1 ${lock}`,
    [id],
  );
  const [row] = rows;
  if (row === undefined) return undefined;
  const current = textOf(row['current']) as State;
  const { from, to } = plan.transitions[event];
  if (!from.includes(current)) return { current, version: undefined };
  const before = BigInt(textOf(row['version']));
  const names = Object.keys(set);
  const others = names.map(
    (name, i) => `, ${backquoted(quoteIdentifier('set', name))} = $${i + 6}`,
  );
  const values = [to, before + 1n, id, before, current, ...names.map((name) => set[name])];
  const { affectedRows } = await session.query(
    `UPDATE ${table} SET ${state} = $1, ${version} = $2${others.join('')}
     WHERE ${key} = $3 AND ${version} = $4 AND ${state} = $5`,
    values as SqlValue[],
  );
  // It changes the version, so the count is 1 under every client flag, and 0 only without the lock.
  if (affectedRows !== 1) {
    const message = `flow ${plan.name}: the row changed under its lock: the handle is not in a transaction`;
    throw new TurngateError('TRANSACTION_REQUIRED', message);
  }
  await session.query(
    `INSERT INTO turngate_transition (flow, entity_id, version, event, from_state, to_state, at)
     VALUES ($1, $2, $3, $4, $5, $6, ${now})`,
    [plan.name, textOf(row['id']), before + 1n, event, current, to],
  );
  return { current, version: before + 1n };
}

function inBackquotes<Plan extends FlowPlan<string, string>>({ table, id, state, version }: Plan) {
  const [t, i, s, v] = [table, id, state, version].map(backquoted) as [
    string,
    string,
    string,
    string,
  ];
  return { table: t, id: i, state: s, version: v };
}

/** MySQL takes "…" for a string unless told otherwise. Identifiers hold letters, digits and _ only. */
function backquoted(quoted: string): string {
  return quoted.replaceAll('"', '`');
}

/** Binary columns arrive as bytes. */
function textOf(value: unknown): string {
  return value instanceof Uint8Array ? Buffer.from(value).toString('utf8') : String(value);
}
