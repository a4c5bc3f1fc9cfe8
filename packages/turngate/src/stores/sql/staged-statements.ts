/**
 * Every statement about staged operations, once, with the few words that differ between dialects.
 * Winners are proven by the owner token that is read back, holds by a guarded write; no statement
 * depends on how a MySQL driver counts rows that were matched but not changed.
 */
import type { SqlDialect } from '../../contract/sql-session.ts';

/** What differs. */
interface Words {
  /** The server's clock, epoch milliseconds. Not a session time zone's: those repeat an hour. */
  readonly now: string;
  readonly int: (parameter: string) => string;
  /** Holds a row against take-over until the end of the statement or transaction. */
  readonly share: string;
  readonly lock: string;
  readonly skipLocked: string;
  readonly ifAbsent: (column: string) => string;
}

const words: Readonly<Record<SqlDialect, Words>> = {
  postgres: {
    now: 'trunc(extract(epoch FROM clock_timestamp()) * 1000)::bigint',
    int: (parameter) => `${parameter}::bigint`,
    share: 'FOR SHARE OF s',
    lock: 'FOR UPDATE',
    skipLocked: 'FOR UPDATE SKIP LOCKED',
    ifAbsent: () => 'ON CONFLICT DO NOTHING',
  },
  mysql: {
    now: "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6)) DIV 1000)",
    int: (parameter) => `CAST(${parameter} AS SIGNED)`,
    share: 'LOCK IN SHARE MODE',
    lock: 'FOR UPDATE',
    skipLocked: 'FOR UPDATE',
    ifAbsent: (column) => `ON DUPLICATE KEY UPDATE ${column} = ${column}`,
  },
  sqlite: {
    now: "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
    int: (parameter) => `CAST(${parameter} AS INTEGER)`,
    share: '', // One writer at a time.
    lock: '',
    skipLocked: '',
    ifAbsent: () => 'ON CONFLICT DO NOTHING',
  },
};

const unfinished = "('running', 'waiting', 'sleeping', 'indeterminate')";

/** `$1, $2, …` from a first number on. */
function parameters(from: number, count: number): string {
  return Array.from({ length: count }, (_, i) => `$${from + i}`).join(', ');
}

/** The statements of one dialect. */
export type StagedStatements = ReturnType<typeof stagedStatements>;

/** Builds the texts of a dialect, once per store. */
export function stagedStatements(dialect: SqlDialect) {
  const columns = columnsOf(words[dialect]);
  return {
    ...claimStatements(dialect, columns),
    ...holdStatements(words[dialect]),
    ...stepStatements(words[dialect]),
    ...adminStatements(words[dialect], columns),
  };
}

function columnsOf({ now }: Words): string {
  return `operation, scope, record_key, state, fingerprint, input, owner, attempt, failures,
  promised, result, error, due_at - ${now} AS due_in, started_at, expires_at, ${now} AS now_at`;
}

/** $1 id, $2 owner, $3 attempt, wherever a hold is named. */
const held = "s.id = $1 AND s.owner = $2 AND s.attempt = $3 AND s.state = 'running'";
const hold = held.replaceAll('s.', '');

function claimStatements(dialect: SqlDialect, columns: string) {
  const { now, int, ifAbsent } = words[dialect];
  const read = `SELECT ${columns} FROM turngate_staged WHERE id = $1`;
  /** $1 id, $2 operation, $3 scope, $4 key, $5 fingerprint, $6 input, $7 owner, $8 lease. */
  const insert = (state: string, attempt: number, promised: number, due: string): string =>
    `INSERT INTO turngate_staged (id, operation, scope, record_key, state, fingerprint, input,
  owner, attempt, failures, promised, lease_ms, due_at, started_at)
  VALUES ($1, $2, $3, $4, '${state}', $5, $6, $7, ${attempt}, 0, ${promised}, ${int('$8')}, ${due}, ${now})
  ${ifAbsent('id')}`;
  const both = (text: string): string =>
    `WITH inserted AS (${text} RETURNING *)
  SELECT ${columns} FROM inserted UNION ALL ${read}`;
  /** One statement where it can be, otherwise two. */
  const insertThenRead = (text: string): string[] =>
    dialect === 'postgres' ? [both(text)] : [text, read];
  /** $1 id, $2 owner, $3 seen attempt, $4 lease, $5 fingerprint, $6 input. */
  const take = (state: string, due: string, reset: string, condition: string): string =>
    `UPDATE turngate_staged SET owner = $2, attempt = attempt + 1, ${reset}
  state = '${state}', lease_ms = ${int('$4')}, due_at = ${due}, result = NULL, expires_at = NULL
  WHERE id = $1 AND attempt = ${int('$3')} AND ${condition}`;
  const lease = `${now} + ${int('$4')}`;
  // MySQL sets from left to right, so what reads the old state comes before the state is set.
  // The attempt is $3: the column may have been set already.
  const moved = `EXISTS (SELECT 1 FROM turngate_step p
  WHERE p.id = $1 AND p.attempt = ${int('$3')} AND p.state <> 'started')`;
  const countCrash = `failures = CASE WHEN state <> 'running' THEN failures
  WHEN ${moved} THEN 1 ELSE failures + 1 END,`;
  const restart = (promised: number): string => `failures = 0, promised = ${promised}, error = NULL,
  started_at = ${now}, fingerprint = $5, input = $6,`;
  const isFree = `(state = 'released' OR (state IN ('done', 'refused') AND expires_at <= ${now}))`;
  return {
    read,
    open: insertThenRead(insert('running', 1, 0, `${now} + ${int('$8')}`)),
    enqueue: insertThenRead(insert('waiting', 0, 1, now)),
    takeOver: {
      due: take('running', lease, countCrash, `state IN ${unfinished} AND due_at <= ${now}`),
      now: take('running', lease, '', "state = 'waiting'"),
      fresh: take('running', lease, restart(0), isFree),
    },
    /** A released or expired one is promised anew, in the caller's transaction. */
    promise: take('waiting', now, restart(1), isFree),
  };
}

function holdStatements({ now, int }: Words) {
  const ours = (count: number): string =>
    `state = 'running' AND id IN (${parameters(1, count)}) AND owner IN (${parameters(1 + count, count)})`;
  return {
    renew: (count: number) =>
      `UPDATE turngate_staged SET due_at = ${now} + lease_ms WHERE ${ours(count)}`,
    stillHeld: (count: number) => `SELECT id FROM turngate_staged WHERE ${ours(count)}`,
    isHeld: `SELECT 1 AS held FROM turngate_staged WHERE ${hold}`,
    end: `UPDATE turngate_staged SET state = $4, result = $5, error = NULL, due_at = NULL,
  failures = 0, expires_at = ${now} + ${int('$6')} WHERE ${hold}`,
    /** $4 state, $5 due or null, $6 failures, $7 error, $8 retention or null. */
    leave: `UPDATE turngate_staged SET state = $4, due_at = ${now} + ${int('$5')},
  failures = ${int('$6')},
  promised = CASE WHEN $4 = 'sleeping' THEN 1 ELSE promised END,
  error = $7, expires_at = ${now} + ${int('$8')} WHERE ${hold}`,
  };
}

function stepStatements({ now, int, share, ifAbsent }: Words) {
  const columns = `name, seq, kind, state, on_unknown, fingerprint, attempt, result,
  due_at - ${now} AS due_in, started_at`;
  /** $4 name, $5 seq, $6 kind, $7 policy, $8 fingerprint, $9 state, $10 result, $11 sleep. */
  const insert = `INSERT INTO turngate_step (id, name, seq, kind, on_unknown, fingerprint, state,
  result, attempt, due_at, started_at, ended_at)
  SELECT s.id, $4, ${int('$5')}, $6, $7, $8, $9, $10, s.attempt, ${now} + ${int('$11')}, ${now},
  CASE WHEN $9 = 'started' THEN NULL ELSE ${now} END
  FROM turngate_staged s WHERE ${held} ${share}`;
  /** A step without a result belongs to the newest attempt: take-overs see to it. */
  const open = `id = $1 AND name = $2 AND attempt = ${int('$3')} AND state = 'started'`;
  return {
    recordStep: `${insert} ${ifAbsent('turngate_step.id')}`,
    /** In a transaction with an effect a second record must fail, so that the effect is undone. */
    recordStepOnce: insert,
    finishStep: `UPDATE turngate_step SET state = $4, result = $5, ended_at = ${now} WHERE ${open}`,
    dropStep: `DELETE FROM turngate_step WHERE ${open}`,
    forgetSteps: 'DELETE FROM turngate_step WHERE id = $1',
    adoptSteps: `UPDATE turngate_step SET attempt = ${int('$2')} WHERE id = $1 AND state = 'started'`,
    steps: `SELECT ${columns} FROM turngate_step WHERE id = $1 ORDER BY seq`,
    step: `SELECT ${columns} FROM turngate_step WHERE id = $1 AND name = $2`,
  };
}

function adminStatements({ now, int, lock, skipLocked }: Words, columns: string) {
  return {
    due: (count: number, limit: number) =>
      `SELECT ${columns} FROM turngate_staged WHERE due_at <= ${now} AND state IN ${unfinished}
  AND operation IN (${parameters(1, count)}) ORDER BY due_at LIMIT ${limit}`,
    list: (conditions: readonly string[], limit: number) => {
      const where = conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : '';
      return `SELECT id, ${columns} FROM turngate_staged ${where} ORDER BY id LIMIT ${limit}`;
    },
    lockRow: `SELECT ${columns} FROM turngate_staged WHERE id = $1 ${lock}`,
    /** $2 state, $3 due or null, $4 retention or null, $5 owner. */
    decide: `UPDATE turngate_staged SET state = $2, due_at = ${now} + ${int('$3')}, owner = $5,
  attempt = attempt + 1, failures = 0, promised = CASE WHEN $2 = 'waiting' THEN 1 ELSE promised END,
  expires_at = ${now} + ${int('$4')} WHERE id = $1`,
    purgeable: (limit: number) =>
      `SELECT id FROM turngate_staged WHERE expires_at <= ${now}
  AND state IN ('done', 'refused', 'released') LIMIT ${limit} ${skipLocked}`,
    purgeSteps: (count: number) =>
      `DELETE FROM turngate_step WHERE id IN (${parameters(1, count)})`,
    purge: (count: number) =>
      `DELETE FROM turngate_staged WHERE expires_at <= ${now} AND id IN (${parameters(1, count)})`,
  };
}
