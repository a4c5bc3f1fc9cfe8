/** Kysely: a `Transaction`. */
import type { SqlDialect, SqlSession } from '../../contract/sql-session.ts';
import { TurngateError } from '../../core/errors.ts';
import { optionError } from '../../core/option.ts';
import { dialectOf, dollars, questionMarks, statementOf } from './statement.ts';

/** The part of a Kysely `Transaction` that Turngate calls. */
export interface KyselyTransactionLike {
  readonly isTransaction: boolean;
  withoutPlugins(): KyselyTransactionLike;
  // biome-ignore lint/suspicious/noExplicitAny: Kysely's compiled queries cannot be told structurally.
  executeQuery(query: any): Promise<any>;
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  getExecutor(): any;
}

/**
 * The session of a Kysely transaction: hand it to `within`, or to any feature that takes a session.
 * Plugins do not see Turngate's statements.
 *
 * @param dialect only where it cannot be told from the adapter's class (own dialects, minified code)
 * @throws TRANSACTION_REQUIRED when it is the database and no transaction
 */
export function kyselyTx(trx: KyselyTransactionLike, dialect?: SqlDialect): SqlSession {
  if (typeof trx?.executeQuery !== 'function' || typeof trx.withoutPlugins !== 'function') {
    throw optionError('trx', 'a Kysely transaction', trx);
  }
  if (!trx.isTransaction) {
    throw new TurngateError('TRANSACTION_REQUIRED', 'this is Kysely’s database, not a transaction');
  }
  const plain = trx.withoutPlugins();
  const spoken = dialect ?? adapterDialect(trx);
  return {
    dialect: spoken,
    async query(text, values) {
      const style = spoken === 'postgres' ? dollars : questionMarks;
      const { text: sql, values: parameters } = statementOf(spoken, text, values, style);
      const query = { kind: 'RawNode', sqlFragments: [sql], parameters: [] };
      const { rows, numAffectedRows } = (await plain.executeQuery({
        sql,
        parameters,
        query,
        queryId: { queryId: 'turngate' },
      })) as { rows: Record<string, unknown>[]; numAffectedRows?: bigint };
      return { rows, affectedRows: Number(numAffectedRows ?? rows.length) };
    },
  };
}

function adapterDialect(trx: KyselyTransactionLike): SqlDialect {
  const { adapter } = trx.getExecutor() as { adapter?: object };
  const name = adapter?.constructor.name ?? '';
  return dialectOf(/^(Postgres|Mysql|Sqlite)/.exec(name)?.[0] ?? name);
}
