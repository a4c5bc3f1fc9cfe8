/** The shop's database, whichever it is: the trade sees no difference. */
import type { RecordStore, SqlDatabase, SqlSession, StagedStore } from 'turngate/contract';
import type { Tx } from '../trade/store.ts';

/** An open database with everything the shop keeps in it. */
export interface ShopDatabase {
  readonly records: RecordStore<Tx>;
  readonly staged: StagedStore<Tx>;
  readonly database: SqlDatabase<Tx>;
  /** A transaction that only reads, and sees one moment of all tables. */
  snapshot<T>(read: (sql: SqlSession) => Promise<T>): Promise<T>;
  /** Brings the library's tables and the shop's own up to date. Several processes may call it at once. */
  migrate(): Promise<void>;
  end(): Promise<void>;
}
