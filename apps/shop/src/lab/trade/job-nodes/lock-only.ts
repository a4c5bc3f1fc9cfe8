/** WRONG: a lock around the job. Clocks differ: the next timer goes off when the lock is free again. */
import { beforeCommit, type JobContender, payInterest } from './terms.ts';

export const lockOnly: JobContender = {
  title: 'lock only',
  idea: 'Takes a lock of the job or goes without it; nothing remembers which period was run.',
  breaks: ['twice'],
  why: 'the lock says "not now", and the job was to be run "not again"',
  open: ({ store: { database } }) => ({
    fire: (period, trial) =>
      database.transaction(async (sql) => {
        const { rows } = await sql.query(
          'SELECT pg_try_advisory_xact_lock(hashtext($1)) AS locked',
          [`interest ${period.label}`],
        );
        if (rows[0]?.['locked'] !== true) return 'taken';
        await payInterest(sql, period);
        await trial.at(beforeCommit);
        return 'ran';
      }),
  }),
};
