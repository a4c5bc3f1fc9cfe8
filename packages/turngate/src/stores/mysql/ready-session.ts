/** A ready session, made by somebody else over whatever they speak to MySQL with (an ORM). */
import type { SqlSession } from '../../contract/sql-session.ts';
import { together } from '../../contract/sql-together.ts';
import { optionError } from '../../core/option.ts';
import type { Link } from './driver.ts';

/**
 * The session as a connection of the caller's.
 *
 * @throws OPTION_INVALID when it speaks to another kind of database
 */
export function readyLink(session: SqlSession): Link {
  if (session.dialect !== 'mysql') {
    throw optionError('tx', 'a session of MySQL or MariaDB', session.dialect);
  }
  return {
    session,
    oneTrip: false,
    database: undefined,
    mariadb: false, // Not known; what MySQL needs is good for both.
    async batch(texts) {
      const answers = await together(
        session,
        texts.map((text) => ({ text, values: [] })),
      );
      return answers.map((answer) => ({
        ...answer,
        inTransaction: undefined,
        insertId: undefined,
      }));
    },
  };
}

/** A savepoint is gone at once when no transaction is open: then RELEASE fails. */
export async function proveTransaction(session: SqlSession): Promise<void> {
  await session.query('SAVEPOINT turngate_proof', []);
  await session.query('RELEASE SAVEPOINT turngate_proof', []);
}
