/** What operators and the purge do to staged operations. */
import type { AlongWith } from '../../contract/record-store.ts';
import type { SqlResult, SqlSession, SqlValue } from '../../contract/sql-session.ts';
import type { StagedFilter, StagedRecord, StagedVerdict } from '../../contract/staged-store.ts';
import { integerOption } from '../../core/option.ts';
import { type RecordId, recordIdDigest } from '../../core/record-id.ts';
import { recordOf } from './staged-rows.ts';
import type { StagedStatements } from './staged-statements.ts';

/** A released record of an operator is kept a day, to be looked at. */
const releasedKeepMs = 86_400_000;

/** One page, in the order of the digests. */
export async function listPage(
  sql: StagedStatements,
  filter: StagedFilter,
  query: (text: string, values: readonly SqlValue[]) => Promise<SqlResult>,
): Promise<{ readonly records: readonly StagedRecord[]; readonly cursor: string | undefined }> {
  const limit = integerOption('limit', filter.limit, { min: 1, max: 1_000, fallback: 100 });
  const values: string[] = [];
  const conditions: string[] = [];
  const add = (condition: string, value: string | undefined): void => {
    if (value === undefined) return;
    values.push(value);
    conditions.push(`${condition} $${values.length}`);
  };
  add('operation =', filter.operation);
  add('scope =', filter.scope);
  add('state =', filter.state);
  add('id >', filter.after);
  const { rows } = await query(sql.list(conditions, limit), values);
  const last = rows.length === limit ? rows.at(-1) : undefined;
  const cursor = last === undefined ? undefined : recordIdDigest(recordOf(last).id);
  return { records: rows.map(recordOf), cursor };
}

/** Applies a verdict; the attempt number grows, so whoever still works on it writes nothing more. */
export async function decideIn(
  session: SqlSession,
  sql: StagedStatements,
  recordId: RecordId,
  verdict: StagedVerdict,
  also?: AlongWith,
): Promise<'done' | 'missing' | 'refused'> {
  const id = recordIdDigest(recordId);
  const row = (await session.query(sql.lockRow, [id])).rows[0];
  if (row === undefined) return 'missing';
  const { state, attempt } = recordOf(row);
  if (state === 'done' || state === 'refused') return 'refused';
  if (verdict.verb === 'happened' || verdict.verb === 'not-happened') {
    const step = [id, verdict.step, attempt];
    const { affectedRows } =
      verdict.verb === 'happened'
        ? await session.query(sql.finishStep, [...step, 'done', verdict.result])
        : await session.query(sql.dropStep, step);
    if (affectedRows === 0) return 'refused';
  }
  if (verdict.verb === 'release') await session.query(sql.forgetSteps, [id]);
  else await session.query(sql.adoptSteps, [id, attempt + 1]);
  const next =
    verdict.verb === 'park'
      ? ['parked', null, null]
      : verdict.verb === 'release'
        ? ['released', null, releasedKeepMs]
        : ['waiting', 0, null];
  await session.query(sql.decide, [id, ...next, 'operator']);
  await also?.(session);
  return 'done';
}

/** One small batch of expired operations with their steps. */
export async function purgeBatch(
  session: SqlSession,
  sql: StagedStatements,
  rows: number,
): Promise<number> {
  const limit = integerOption('batchRows', rows, { min: 1, max: 10_000, fallback: 500 });
  const found = await session.query(sql.purgeable(limit), []);
  const ids = found.rows.map((row) => String(row['id']));
  if (ids.length === 0) return 0;
  await session.query(sql.purgeSteps(ids.length), ids);
  return (await session.query(sql.purge(ids.length), ids)).affectedRows;
}
