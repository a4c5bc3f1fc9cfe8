/**
 * Guard: a semantic lock for the time a saga is on its way. Others see that a resource is being
 * changed and keep away, or read it knowing so. It replaces the undo images of AT mode.
 */
import { ClaimTable } from '../claim/claim-table.ts';
import type { SqlSession } from '../contract/sql-session.ts';
import { TurngateError } from '../core/errors.ts';
import { integerOption, optionError } from '../core/option.ts';
import { sqlNowMs } from '../core/sql-text.ts';
import { attemptIds, systemRuntime } from '../runtime/runtime.ts';

const nextToken = attemptIds(systemRuntime);
const guards = new ClaimTable({
  table: 'turngate_guard',
  key: ['resource'],
  fresh: { saga_id: '{}', until_ms: '{now} + {}' },
  read: { saga_id: 'saga_id', left_ms: 'until_ms - {now}' },
});

/** A hold on a resource. */
export interface GuardClaim {
  /** What is guarded, like `account:42`: 1 to 200 visible ASCII characters. */
  readonly resource: string;
  /** Who guards it: the saga's key. */
  readonly sagaId: string;
  /**
   * A guard that nobody releases ends by itself after this.
   *
   * @unit milliseconds, integer, 1_000 to 31 days
   * @default 86_400_000
   */
  readonly holdMs?: number;
}

/**
 * Takes the guard in the step's own transaction; taking it again for the same saga is no news.
 *
 * @throws GUARDED when another saga has it, OPTION_INVALID
 */
export async function takeGuard(sql: SqlSession, claim: GuardClaim): Promise<void> {
  const { resource, sagaId } = claim;
  for (const [option, value, max] of [
    ['resource', resource, 200],
    ['sagaId', sagaId, 64],
  ] as const) {
    if (typeof value !== 'string' || !/^[\x21-\x7e]+$/.test(value) || value.length > max) {
      throw optionError(option, `1 to ${max} visible ASCII characters`, value);
    }
  }
  const range = { min: 1_000, max: 31 * 86_400_000, fallback: 86_400_000 };
  const holdMs = integerOption('holdMs', claim.holdMs, range);
  const wish = { key: [resource], values: [sagaId, holdMs], token: nextToken() };
  const { ours, row } = await guards.claim(sql, wish);
  if (ours || row['saga_id'] === sagaId) return;
  if (Number(row['left_ms']) > 0) {
    throw new TurngateError('GUARDED', `"${resource}" is being changed by another saga`, {
      retryAfterMs: 1_000,
    });
  }
  await sql.query(
    `UPDATE turngate_guard SET saga_id = $2, until_ms = ${sqlNowMs[sql.dialect]} + ${holdMs} WHERE resource = $1`,
    [resource, sagaId],
  );
}

/** Releases it with the saga's last step; somebody else's stays. */
export async function releaseGuard(
  sql: SqlSession,
  { resource, sagaId }: Pick<GuardClaim, 'resource' | 'sagaId'>,
): Promise<void> {
  await sql.query('DELETE FROM turngate_guard WHERE resource = $1 AND saga_id = $2', [
    resource,
    sagaId,
  ]);
}

/** Who is changing the resource right now; undefined: nobody. */
export async function readGuard(
  sql: Pick<SqlSession, 'query' | 'dialect'>,
  resource: string,
): Promise<string | undefined> {
  const { rows } = await sql.query(
    `SELECT saga_id FROM turngate_guard WHERE resource = $1 AND until_ms > ${sqlNowMs[sql.dialect]}`,
    [resource],
  );
  return rows[0]?.['saga_id'] as string | undefined;
}
