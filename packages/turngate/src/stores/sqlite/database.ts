/** The database port over one handle: one transaction at a time, in the order they were asked for. */
import { isSqlSession, type SqlDatabase, type SqlSession } from '../../contract/sql-session.ts';
import { noSteps, together } from '../../contract/sql-together.ts';
import { connectionOf, type SqliteConnection, type SqliteLike } from './client.ts';
import { begin, commit, type Patience, rollBack } from './transaction.ts';

export function sqliteSqlDatabase<Db extends SqliteLike>(
  connection: SqliteConnection,
  patience: Patience,
): SqlDatabase<Db> {
  const { runtime, limitMs } = patience;
  return {
    dialect: 'sqlite',
    session: sqliteSessionOf,
    async query(text, values) {
      const send = (): ReturnType<SqliteConnection['querySync']> =>
        connection.querySync(text, values);
      return await connection.turn(() => connection.untilFree(runtime, limitMs, send));
    },
    async transaction(work, { first = noSteps, last = noSteps } = {}) {
      return await connection.turn(async () => {
        await begin(connection, patience);
        try {
          const answers = await together(connection, first(connection));
          const value = await work(connection, connection.db as Db, answers);
          await together(connection, last(value));
          await commit(connection, patience, { undo: false });
          return value;
        } catch (error) {
          rollBack(connection);
          throw error;
        }
      });
    },
  };
}

/** The session of a handle, or of whatever an ORM speaks to it with. */
export function sqliteSessionOf(tx: unknown): SqlSession {
  return isSqlSession(tx) ? tx : connectionOf(tx);
}
