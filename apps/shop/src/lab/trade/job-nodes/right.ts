/** RIGHT: a job of the library, with its mark in the transaction of its work. */
import { createJobRunner, defineJob } from 'turngate/job';
import { beforeCommit, type JobContender, payInterest } from './terms.ts';

/** How long the others wait for a node that was killed. */
const leaseMs = 1_000;

export const right: JobContender = {
  title: 'turngate',
  idea: 'Every node may; the row of the period decides who runs, and is marked with the work.',
  breaks: [],
  why: 'later timers find the period done, and the lease of a dead node ends',
  open({ store: { database }, onEnd }) {
    const runner = createJobRunner(database, []);
    onEnd(() => runner.stop());
    return {
      async fire(period, trial) {
        const job = defineJob({
          name: 'lab.interest',
          schedule: { daily: '02:00', timeZone: 'Asia/Shanghai' },
          leaseMs,
          run: ({ completeIn }) =>
            database.transaction(async (sql) => {
              await payInterest(sql, period);
              await trial.at(beforeCommit);
              await completeIn(sql);
            }),
        });
        return await runner.run(job, period);
      },
    };
  },
};
