/** Sequelize: the `Transaction` of `sequelize.transaction`. */
import type { SqlSession } from '../../contract/sql-session.ts';
import { TurngateError } from '../../core/errors.ts';
import { optionError } from '../../core/option.ts';
import { dialectOf, resultOf, type Style, statementOf } from './statement.ts';

/** The part of a Sequelize `Transaction` that Turngate calls. */
export interface SequelizeTransactionLike {
  readonly sequelize?: unknown;
  commit(): Promise<void>;
  rollback(): Promise<void>;
}

interface Internals {
  readonly finished?: string;
  readonly sequelize: {
    getDialect(): string;
    query(text: string, options: object): Promise<[unknown, unknown]>;
  };
}

/** `$` in the text itself is written `$$`, wherever there are values. */
const ownDollars: Style = {
  place: (n) => `$${n}`,
  literal: (text) => text.replaceAll('$', '$$$$'),
};

/**
 * The session of a Sequelize transaction: hand it to `within`, or to any feature that takes a session.
 *
 * @throws TRANSACTION_REQUIRED when it has ended
 */
export function sequelizeTx(transaction: SequelizeTransactionLike): SqlSession {
  const { sequelize, finished } = (transaction ?? {}) as unknown as Partial<Internals>;
  if (typeof sequelize?.query !== 'function') {
    throw optionError('transaction', 'a transaction of Sequelize', transaction);
  }
  if (finished !== undefined) {
    const message = `this Sequelize transaction has ended (${finished})`;
    throw new TurngateError('TRANSACTION_REQUIRED', message);
  }
  const dialect = dialectOf(sequelize.getDialect());
  return {
    dialect,
    async query(text, values) {
      const statement = statementOf(dialect, text, values, ownDollars);
      const bind = statement.values.length > 0 ? { bind: statement.values } : {};
      // Without values nothing is parsed, so nothing may be doubled.
      const sql = statement.values.length > 0 ? statement.text : plain(statement.text);
      const [rows, meta] = await sequelize.query(sql, { ...bind, transaction });
      const list = Array.isArray(rows) ? (rows as Record<string, unknown>[]) : [];
      // INSERT and UPDATE, told by Sequelize from the text: something, then the count.
      if (typeof meta === 'number') return { rows: list, affectedRows: meta };
      if (!Array.isArray(rows)) return resultOf([rows, meta]);
      const { rowCount } = (meta ?? {}) as { rowCount?: number | null };
      return { rows: list, affectedRows: rowCount ?? list.length };
    },
  };
}

function plain(text: string): string {
  return text.replaceAll('$$', '$');
}
