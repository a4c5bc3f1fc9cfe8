/** Two copies of the package in one process, as a dependency tree can have, over one pool. */
import pg from 'pg';
import { describe, expect, inject, it } from 'vitest';
import type { PgBatch as Batch } from '../src/stores/postgres/drivers/pg-batch.ts';

describe.skipIf(inject('postgresUrl') === '')('two copies of the package', () => {
  it('share what is prepared on a connection', async () => {
    const path = '../src/stores/postgres/drivers/pg-batch.ts';
    const copies = [await import(/* @vite-ignore */ path), await import(`${path}?copy`)];
    expect(copies[0].PgBatch).not.toBe(copies[1].PgBatch);
    const client = new pg.Client({ connectionString: inject('postgresUrl') });
    await client.connect();
    const step = { statement: { name: 'turngate_two_copies', text: 'SELECT 1::text' }, values: [] };
    for (const { PgBatch } of copies) {
      const answers = await new Promise((resolve, reject) => {
        const batch: Batch = new PgBatch([step], true);
        batch.callback = (error, result) => (error ? reject(error) : resolve(result));
        client.query(batch as unknown as pg.Submittable);
      });
      expect(answers).toEqual([{ rows: [['1']], affectedRows: 1 }]);
    }
    await client.end();
  });
});
