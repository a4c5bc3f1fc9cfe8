/** WRONG: a timer in every node, and nothing else. */
import { beforeCommit, type JobContender, payInterest } from './terms.ts';

export const cronEverywhere: JobContender = {
  title: 'cron on each node',
  idea: 'The timer of every node runs the job.',
  breaks: ['twice'],
  why: 'three nodes, three timers, three runs',
  open: ({ store: { database } }) => ({
    async fire(period, trial) {
      await database.transaction(async (sql) => {
        await payInterest(sql, period);
        await trial.at(beforeCommit);
      });
      return 'ran';
    },
  }),
};
