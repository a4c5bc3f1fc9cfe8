/** WRONG: the period is marked as run before the work is done. A node that dies in between takes it along. */
import { beforeCommit, type JobContender, payInterest } from './terms.ts';

export const markFirst: JobContender = {
  title: 'marked first',
  idea: 'Inserts a unique row of the period and commits it; who inserted it does the work.',
  breaks: ['missed'],
  why: 'killed between row and work: the row turns every other node away',
  open: ({ store: { database } }) => ({
    async fire(period, trial) {
      const { affectedRows } = await database.query(
        'INSERT INTO lab_period VALUES ($1) ON CONFLICT DO NOTHING',
        [period.label],
      );
      if (affectedRows === 0) return 'taken';
      await database.transaction(async (sql) => {
        await payInterest(sql, period);
        await trial.at(beforeCommit);
      });
      return 'ran';
    },
  }),
};
