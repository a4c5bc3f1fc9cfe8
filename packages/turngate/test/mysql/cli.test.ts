/** `turngate migrate` on a MySQL url, through the driver of this project. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runMigrate } from '../../src/cli/migrate.ts';
import { describeWith } from '../support/servers.ts';
import { createDatabase, type TestDatabase } from './support.ts';

describeWith('mariadb', 'turngate migrate on MariaDB', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createDatabase({ migrated: false });
  });
  afterAll(() => database?.drop());

  it('applies once, then has nothing to do, under both url schemes', async () => {
    const first = JSON.parse(await runMigrate({ url: database.url, json: true }));
    expect(first.applied.slice(0, 3)).toEqual(['records', 'locks', 'transitions']);
    const url = database.url.replace('mysql:', 'mariadb:');
    expect(await runMigrate({ url, json: false })).toBe(
      `nothing to apply; the schema is at version ${first.version}`,
    );
  });

  it('says what failed without the password', async () => {
    const url = 'mysql://u:sesame@127.0.0.1:1/d';
    const error = await runMigrate({ url, json: false }).catch((reason: Error) => reason);
    expect(String(error)).toContain('STORE_UNAVAILABLE');
    expect(String(error)).not.toContain('sesame');
  });
});
