/** Is the transaction still one that COMMIT will commit? */
import type { SqlSession } from '../../contract/sql-session.ts';
import { TurngateError } from '../../core/errors.ts';
import { errorChain, sqlState } from '../../stores/sql/sql-error.ts';

/**
 * The last statement of a transaction whose library hides how COMMIT was answered. After a statement
 * failed and its error was swallowed, PostgreSQL answers COMMIT with ROLLBACK, and Knex, Drizzle,
 * Sequelize and TypeORM resolve all the same; after a deadlock MySQL has rolled back and goes on
 * without a transaction. This probe fails instead. `within` needs none for what happened before it or
 * in it; call this at the end when more statements follow it.
 *
 * @throws TRANSACTION_ROLLED_BACK, TRANSACTION_REQUIRED
 */
export async function assertAlive(session: SqlSession): Promise<void> {
  if (session.dialect === 'sqlite') return await assertOpen(session);
  try {
    await session.query('SAVEPOINT turngate_alive', []);
    await session.query('RELEASE SAVEPOINT turngate_alive', []);
  } catch (error) {
    const state = sqlState(error);
    if (state === '25P02') {
      const message = 'a statement inside the transaction failed and its error was swallowed';
      throw new TurngateError('TRANSACTION_ROLLED_BACK', message, { cause: error });
    }
    const gone = [...errorChain(error)].some(({ errno }) => errno === 1305);
    if (state !== '25P01' && !gone) throw error;
    const message =
      'no transaction is open any more: it has ended, or a deadlock inside it was swallowed';
    throw new TurngateError('TRANSACTION_REQUIRED', message, { cause: error });
  }
}

/** BEGIN inside a transaction is an error, and changes nothing. */
async function assertOpen(session: SqlSession): Promise<void> {
  const open = await session.query('BEGIN', []).then(
    () => false,
    () => true,
  );
  if (open) return;
  await session.query('ROLLBACK', []);
  throw new TurngateError('TRANSACTION_REQUIRED', 'no transaction is open any more');
}
