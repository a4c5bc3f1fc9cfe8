/** What can be done when the timer of a job goes off, and what must hold after it. */
import type { SqlSession } from 'turngate/contract';
import type { Period } from 'turngate/job';
import type { Contender, Law } from '../../scenario.ts';

export interface JobVerbs {
  /** The node's timer for this period goes off; answers whether it ran the job. */
  readonly fire: Period;
}

/** Where a node is killed: the job has done its work and not committed. */
export const beforeCommit = 'before-commit';

export const jobLaws = {
  twice: {
    one: 'period run again',
    many: 'periods run again',
    meaning: 'the job did the work of a period that had been done',
  },
  missed: {
    one: 'period missed',
    many: 'periods missed',
    meaning: 'no node has done the work of the period in the end',
  },
} as const satisfies Record<string, Law>;

export type JobContender = Contender<JobVerbs, keyof typeof jobLaws>;

/** The work itself: interest of the period, one row for each time it is paid. */
export async function payInterest(sql: SqlSession, { label }: Period): Promise<void> {
  await sql.query('INSERT INTO lab_interest (period) VALUES ($1)', [label]);
}
