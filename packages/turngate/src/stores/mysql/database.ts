/** The database port over a MySQL driver. */
import type { SqlDatabase } from '../../contract/sql-session.ts';
import { noSteps } from '../../contract/sql-together.ts';
import type { MysqlDriver, OwnLink } from './driver.ts';
import { endedError, isSavepointGone } from './mysql-error.ts';
import { mysql2Session } from './mysql2.ts';
import * as sql from './statements.ts';

export function mysqlSqlDatabase<Tx>(driver: MysqlDriver<Tx>): SqlDatabase<Tx> {
  return {
    dialect: 'mysql',
    session: mysql2Session,
    async query(text, values) {
      const link = await driver.connect();
      try {
        return await link.session.query(text, values);
      } finally {
        link.release();
      }
    },
    async transaction(work, { first = noSteps, last = noSteps } = {}) {
      const link = await driver.connect();
      let value: Awaited<ReturnType<typeof work>>;
      try {
        const lead = [sql.readCommitted, ...sql.open];
        const answers = await link.batch([...lead, ...first(link.session).map(link.render)]);
        value = await work(link.session, link.tx, answers.slice(lead.length));
        const ends = last(value).map(link.render);
        await link.batch([...ends, sql.keep(sql.savepoint), sql.commit]);
      } catch (error) {
        await rollBack(link);
        throw isSavepointGone(error) ? endedError(error) : error;
      }
      link.release();
      return value;
    },
  };
}

async function rollBack(link: OwnLink<unknown>): Promise<void> {
  await link.batch(sql.rollback).then(
    () => link.release(),
    () => link.destroy(),
  );
}
