/** Archives every night, on one of the nodes. */
import { defineJob, type Job } from 'turngate/job';
import { archiveBatch } from './archive.ts';
import type { Store } from './store.ts';

/** When, and what. */
export interface ArchiveSettings {
  /**
   * Finished orders whose time to pay ended longer ago are archived.
   *
   * @unit days, integer, 1 to 3_650
   */
  readonly afterDays: number;
  /** Local time, like `03:30`. */
  readonly at: string;
  /** An IANA time zone, like `Asia/Shanghai`. */
  readonly timeZone: string;
}

/**
 * One run per local day over all nodes. Each batch commits by itself, so a run that is cut off is taken
 * up where it stopped, and two runs at once only share the work.
 */
export function archiveJob(store: Store, settings: ArchiveSettings): Job {
  const { afterDays, at, timeZone } = settings;
  return defineJob({
    name: 'shop.archive',
    schedule: { daily: at, timeZone },
    async run({ signal }) {
      do signal.throwIfAborted();
      while ((await archiveBatch(store, afterDays)) > 0);
    },
  });
}
