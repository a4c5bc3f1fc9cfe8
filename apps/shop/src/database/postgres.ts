/** The shop on PostgreSQL. */
import type { Pool } from 'pg';
import type { RecordStore, SqlDatabase, StagedStore } from 'turngate/contract';
import { migrate, postgres, postgresDatabase, postgresStaged } from 'turngate/postgres';
import type { Tx } from '../trade/store.ts';
import { openPool } from './pool.ts';
import { migrateShop } from './schema.ts';
import type { ShopDatabase } from './shop-database.ts';

/** Opens it. */
export function openPostgres(url: string, onIdleError: (error: Error) => void): ShopDatabase {
  return postgresShop(openPool(url, onIdleError));
}

/** The same over a pool that is open; `end` ends it. */
export function postgresShop(pool: Pool): ShopDatabase {
  const database = postgresDatabase(pool) as SqlDatabase<Tx>;
  return {
    records: postgres(pool) as RecordStore<Tx>,
    staged: postgresStaged(pool) as StagedStore<Tx>,
    database,
    snapshot: (read) =>
      database.transaction(async (sql) => {
        await sql.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY', []);
        return await read(sql);
      }),
    async migrate() {
      await migrate(pool);
      await migrateShop(pool);
    },
    end: () => pool.end(),
  };
}
