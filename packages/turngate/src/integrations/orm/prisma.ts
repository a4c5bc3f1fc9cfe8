/** Prisma: the `tx` of an interactive transaction (`prisma.$transaction(async (tx) => …)`). */
import type { SqlDialect, SqlSession } from '../../contract/sql-session.ts';
import { TurngateError } from '../../core/errors.ts';
import { optionError } from '../../core/option.ts';
import { dialectOf, dollars, questionMarks, readsRows, statementOf } from './statement.ts';

/** The part of a Prisma transaction client that Turngate calls. */
export interface PrismaTransactionLike {
  // biome-ignore lint/suspicious/noExplicitAny: Prisma's generics cannot be told structurally.
  $queryRawUnsafe(text: string, ...values: any[]): Promise<any>;
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  $executeRawUnsafe(text: string, ...values: any[]): Promise<any>;
}

/**
 * The session of a Prisma transaction: hand it to `within`, or to any feature that takes a session.
 * An interactive transaction ends after 5 s unless `$transaction` is told otherwise (`timeout`).
 *
 * @param dialect only where the client does not tell its provider
 * @throws TRANSACTION_REQUIRED when it is the client itself and no transaction
 */
export function prismaTx(tx: PrismaTransactionLike, dialect?: SqlDialect): SqlSession {
  if (typeof tx?.$queryRawUnsafe !== 'function') {
    throw optionError('tx', 'a transaction client of Prisma', tx);
  }
  const { $transaction, _activeProvider } = tx as {
    $transaction?: unknown;
    _activeProvider?: string;
  };
  // A transaction's client has none, or cannot be connected; the client itself has both.
  if (typeof $transaction === 'function' && typeof (tx as Disconnect).$disconnect === 'function') {
    throw new TurngateError('TRANSACTION_REQUIRED', 'this is the Prisma client, not a transaction');
  }
  const spoken = dialect ?? dialectOf(_activeProvider);
  return {
    dialect: spoken,
    async query(text, values) {
      const style = spoken === 'postgres' ? dollars : questionMarks;
      const { text: sql, values: bound } = statementOf(spoken, text, values, style);
      if (readsRows(text)) {
        const rows = (await tx.$queryRawUnsafe(sql, ...bound)) as Record<string, unknown>[];
        return { rows, affectedRows: rows.length };
      }
      return { rows: [], affectedRows: Number(await tx.$executeRawUnsafe(sql, ...bound)) };
    },
  };
}

interface Disconnect {
  $disconnect?: unknown;
}
