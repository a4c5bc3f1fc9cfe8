/**
 * A declared write, its guard and its record as one statement, so that the server plans it once per
 * connection. The write gets the condition that no record is there yet; the primary key decides when
 * two processes pass it together.
 */
import { rewritePlaces } from '../../core/sql-text.ts';
import { namedStatement } from './named-step.ts';
import { millis, type Statement } from './statements.ts';

const cacheMax = 500;
const cache = new Map<string, Statement | undefined>();

/** Our own values come first: operation, scope, key, fingerprint, owner, retention. */
const ownPlaces = 6;

/**
 * Six values of ours, then the write's own, all text. One row (result, milliseconds), or none: a record
 * is there, or the write found nothing. Undefined for a write that a condition cannot be added to.
 */
export function oneStatement(write: string): Statement | undefined {
  if (cache.has(write)) return cache.get(write);
  const placed = rewritePlaces(write, (index) => `($${index + ownPlaces}::text)`);
  const guarded = withCondition(placed);
  const statement = guarded === undefined ? undefined : namedStatement(around(guarded));
  if (cache.size >= cacheMax) cache.clear();
  cache.set(write, statement);
  return statement;
}

function around(write: string): string {
  return `WITH w AS (${write}
)
INSERT INTO turngate_record
  (operation, scope, key, state, fingerprint, owner, result, first_processed_at, expires_at)
SELECT $1, $2, $3, 'done', $4, $5, '1' || json_agg(w)::text, clock_timestamp(),
  clock_timestamp() + $6::bigint * interval '1 millisecond'
FROM w HAVING count(*) > 0
RETURNING result, ${millis('first_processed_at')} AS first_ms`;
}

const fresh = `NOT EXISTS (SELECT 1 FROM turngate_record AS turngate_known
  WHERE turngate_known.operation = $1 AND turngate_known.scope = $2 AND turngate_known.key = $3)`;

// Strings, quoted names, comments and dollar quotes are passed over; parentheses are counted.
const tokens =
  /[eE]'(?:[^'\\]|''|\\[\s\S])*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(\w*)\$[\s\S]*?\$\1\$|\/\*|--[^\n]*|[()]|[a-z_]\w*/gi;

/** An UPDATE or DELETE with a WHERE of its own; our condition is put behind it. */
function withCondition(write: string): string | undefined {
  let depth = 0;
  let where: number | undefined;
  let end = write.length;
  let isChange = false;
  for (const { 0: token, index } of write.matchAll(tokens)) {
    const word = token.toLowerCase();
    if (word === '/*') return undefined; // May be nested.
    if (word === '(') depth++;
    if (word === ')') depth--;
    if (depth > 0) continue;
    if (index === write.search(/\S/)) isChange = word === 'update' || word === 'delete';
    if (word === 'current' || word === 'with') return undefined; // A cursor, or a query of its own.
    if (word === 'where') where = index + token.length;
    if (word === 'returning') end = index;
  }
  // A comment at the end of a line would hide what follows on it.
  const [condition, rest] = [write.slice(where, end), write.slice(end)];
  if (!isChange || where === undefined || end < where || /;\s*$/.test(rest || condition)) return;
  return `${write.slice(0, where)} (${condition}\n) AND ${fresh}\n${rest}`;
}
