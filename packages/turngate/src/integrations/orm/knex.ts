/** Knex: the `trx` of `knex.transaction`. */
import type { SqlSession } from '../../contract/sql-session.ts';
import { TurngateError } from '../../core/errors.ts';
import { optionError } from '../../core/option.ts';
import { dialectOf, escapedQuestionMarks, resultOf, type Style, statementOf } from './statement.ts';

/** The part of a Knex transaction that Turngate calls. */
export interface KnexTransactionLike {
  // biome-ignore lint/suspicious/noExplicitAny: Knex's overloads cannot be told structurally.
  raw(sql: any, ...bindings: any[]): any;
  readonly isTransaction?: boolean;
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  readonly client: any;
}

const nameOf = (n: number): string => `turngate_${n}`;
/** On SQLite Knex would leave the backslash of an escaped `?` in the text. */
const names: Style = { place: (n) => `:${nameOf(n)}` };

/**
 * The session of a Knex transaction: hand it to `within`, or to any feature that takes a session.
 *
 * @throws TRANSACTION_REQUIRED when it is the pool and no transaction
 */
export function knexTx(trx: KnexTransactionLike): SqlSession {
  if (typeof trx?.raw !== 'function') throw optionError('trx', 'a Knex transaction', trx);
  if (trx.isTransaction !== true) {
    throw new TurngateError('TRANSACTION_REQUIRED', 'this is Knex itself, not a transaction');
  }
  const dialect = dialectOf((trx.client as { dialect?: string }).dialect);
  return {
    dialect,
    async query(text, values) {
      const style = dialect === 'sqlite' ? names : escapedQuestionMarks;
      const { text: raw, values: bound } = statementOf(dialect, text, values, style);
      const named = (value: unknown, i: number): [string, unknown] => [nameOf(i + 1), value];
      const bindings = dialect === 'sqlite' ? Object.fromEntries(bound.map(named)) : bound;
      return resultOf(await trx.raw(raw, bindings));
    },
  };
}
