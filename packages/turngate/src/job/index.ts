/** Jobs: one run per (job, period) over any number of nodes. */

export { defineJob, type Job, type JobContext, type JobDeclaration } from './declaration.ts';
export { createJobRunner, type JobRunner, type RunResult } from './runner.ts';
export type { Calendar, Period, Schedule } from './schedule.ts';
