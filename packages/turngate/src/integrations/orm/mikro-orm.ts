/** MikroORM: the `EntityManager` of `em.transactional`. */
import type { SqlDialect, SqlSession } from '../../contract/sql-session.ts';
import { TurngateError } from '../../core/errors.ts';
import { optionError } from '../../core/option.ts';
import { dialectOf, escapedQuestionMarks, readsRows, statementOf } from './statement.ts';

/** The part of a MikroORM `EntityManager` that Turngate calls. */
export interface MikroOrmManagerLike {
  isInTransaction(): boolean;
  // biome-ignore lint/suspicious/noExplicitAny: MikroORM's generics cannot be told structurally.
  execute(query: any, params?: any, method?: any): Promise<any>;
  getPlatform(): object;
  /** Pending changes of entities are written. */
  flush(): Promise<void>;
}

/**
 * The session of a MikroORM transaction: hand it to `within`, or to any feature that takes a session.
 * Changes of entities are written when MikroORM flushes: call `em.flush()` at the end of the handler,
 * or they are written after the record, and a failure is not the handler's any more.
 *
 * @param dialect only where it cannot be told from the platform's class (minified code)
 * @throws TRANSACTION_REQUIRED when it is not in a transaction
 */
export function mikroOrmTx(em: MikroOrmManagerLike, dialect?: SqlDialect): SqlSession {
  if (typeof em?.execute !== 'function' || typeof em.isInTransaction !== 'function') {
    throw optionError('em', 'an EntityManager of MikroORM', em);
  }
  if (!em.isInTransaction()) {
    throw new TurngateError('TRANSACTION_REQUIRED', 'this EntityManager is not in a transaction');
  }
  const name = em.getPlatform().constructor.name;
  const spoken = dialect ?? dialectOf(/^(PostgreSql|MySql|MariaDb|Sqlite)/.exec(name)?.[0] ?? name);
  return {
    dialect: spoken,
    async query(text, values) {
      const statement = statementOf(spoken, text, values, escapedQuestionMarks);
      // Without values nothing is parsed, so nothing may be escaped.
      const some = statement.values.length > 0;
      const sql = some ? statement.text : statement.text.replaceAll('\\?', '?');
      if (readsRows(text)) {
        const rows = (await em.execute(sql, statement.values, 'all')) as Record<string, unknown>[];
        return { rows, affectedRows: rows.length };
      }
      const done = (await em.execute(sql, statement.values, 'run')) as { affectedRows?: number };
      return { rows: [], affectedRows: Number(done.affectedRows ?? 0) };
    },
  };
}
