/** What of the stores operators need, whatever their transactions are. */
import type { RecordStore } from '../contract/record-store.ts';
import type { StagedStore } from '../contract/staged-store.ts';

/** Any record store. */
export type AdminRecordStore = Pick<RecordStore<never>, 'name' | 'read' | 'purge' | 'admin'>;

/** Any staged store. */
export type AdminStagedStore = Pick<
  StagedStore<never>,
  'name' | 'list' | 'inspect' | 'decide' | 'purge'
>;
