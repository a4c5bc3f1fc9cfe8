/** A ready session, made by somebody else over whatever they speak to PostgreSQL with (an ORM). */
import type { SqlAnswer, SqlResult, SqlSession, SqlValue } from '../../../contract/sql-session.ts';
import { together } from '../../../contract/sql-together.ts';
import { optionError } from '../../../core/option.ts';
import type { PostgresSession } from '../driver.ts';
import type { Step } from '../statements.ts';

/**
 * The session as the stores need it.
 *
 * @throws OPTION_INVALID when it speaks to another kind of database
 */
export function readySession(session: SqlSession): PostgresSession {
  if (session.dialect !== 'postgres') {
    throw optionError('tx', 'a session of PostgreSQL', session.dialect);
  }
  return 'batch' in session ? (session as PostgresSession) : new ReadySession(session);
}

class ReadySession implements PostgresSession {
  readonly dialect = 'postgres';
  private readonly session: SqlSession;

  constructor(session: SqlSession) {
    this.session = session;
  }

  query(text: string, values: readonly SqlValue[]): Promise<SqlResult> {
    return this.session.query(text, values);
  }

  async batch(steps: readonly Step[]): Promise<SqlAnswer[]> {
    const answers = await together(
      this.session,
      steps.map(({ statement: { text }, values }) => ({ text, values })),
    );
    return [...answers];
  }

  inTransaction(): boolean | undefined {
    return undefined; // SAVEPOINT outside a transaction fails, and tells.
  }
}
