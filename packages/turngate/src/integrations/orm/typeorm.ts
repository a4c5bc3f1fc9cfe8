/** TypeORM: the `EntityManager` of `dataSource.transaction`, or a `QueryRunner` with one started. */
import type { SqlSession } from '../../contract/sql-session.ts';
import { TurngateError } from '../../core/errors.ts';
import { optionError } from '../../core/option.ts';
import { dialectOf, dollars, questionMarks, statementOf } from './statement.ts';

interface RunnerLike {
  readonly isTransactionActive: boolean;
  // biome-ignore lint/suspicious/noExplicitAny: the union of databases cannot be told structurally.
  readonly connection: any;
  query(text: string, values: unknown[], structured: true): Promise<unknown>;
}

/** The part of TypeORM's `EntityManager` or `QueryRunner` that Turngate calls. */
export interface TypeormTransactionLike {
  // biome-ignore lint/suspicious/noExplicitAny: TypeORM's generics cannot be told structurally.
  query(text: string, values?: any): Promise<any>;
  // biome-ignore lint/suspicious/noExplicitAny: the union of databases cannot be told structurally.
  readonly connection: any;
}

/**
 * The session of a TypeORM transaction: hand it to `within`, or to any feature that takes a session.
 *
 * @throws TRANSACTION_REQUIRED when no transaction is active on it
 */
export function typeormTx(manager: TypeormTransactionLike): SqlSession {
  if (typeof manager?.query !== 'function') {
    throw optionError('manager', 'an EntityManager or QueryRunner of TypeORM', manager);
  }
  const { queryRunner } = manager as { queryRunner?: RunnerLike };
  const runner = queryRunner ?? (manager as Partial<RunnerLike>);
  if (runner.isTransactionActive !== true) {
    const message = 'no TypeORM transaction is active on this EntityManager or QueryRunner';
    throw new TurngateError('TRANSACTION_REQUIRED', message);
  }
  const active = runner as RunnerLike;
  const dialect = dialectOf((active.connection as { options: { type: string } }).options.type);
  return {
    dialect,
    async query(text, values) {
      const style = dialect === 'postgres' ? dollars : questionMarks;
      const { text: sql, values: bound } = statementOf(dialect, text, values, style);
      const answer = (await active.query(sql, bound, true)) as {
        records?: Record<string, unknown>[];
        raw?: unknown;
        affected?: number | null;
      };
      const list = answer.records ?? (Array.isArray(answer.raw) ? answer.raw : []);
      return { rows: list, affectedRows: Number(answer.affected ?? list.length) };
    },
  };
}
