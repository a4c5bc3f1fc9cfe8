/** Steps of features, which know texts only, as the drivers send them. */
import type { SqlStep, SqlValue } from '../../contract/sql-session.ts';
import { hash64 } from '../../core/hash64.ts';
import type { Statement, Step } from './statements.ts';

const cacheMax = 500;
const cache = new Map<string, Statement>();

/** The step under the name of its text. */
export function namedStep({ text, values }: SqlStep): Step {
  return { statement: namedStatement(text), values: values.map(asText) };
}

/** Prepared under a name made of its text: two copies of this package agree about it. */
export function namedStatement(text: string): Statement {
  let statement = cache.get(text);
  if (statement === undefined) {
    const name = `turngate_${BigInt.asUintN(64, hash64(text)).toString(16)}`;
    statement = { name, text };
    if (cache.size >= cacheMax) cache.clear();
    cache.set(text, statement);
  }
  return statement;
}

function asText(value: SqlValue): string | null {
  if (value === null) return null;
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Uint8Array) return `\\x${Buffer.from(value).toString('hex')}`;
  return String(value);
}
