import { describe, expect, it } from 'vitest';
import * as mysql from '../mysql/mysql-error.ts';
import * as postgres from '../postgres/postgres-error.ts';
import { isConflict, postgresError } from '../postgres/postgres-error.ts';
import * as sqlite from '../sqlite/sqlite-error.ts';
import { isConnectionLost, sqlState } from './sql-error.ts';

const error = (fields: object): Error => Object.assign(new Error('x'), fields);

describe('reading database errors', () => {
  it.each([
    ['pg, postgres.js, PGlite', error({ code: '23505' })],
    ['Drizzle', error({ cause: error({ code: '23505' }) })],
    ['TypeORM', error({ driverError: error({ code: '23505' }) })],
    ['Sequelize', error({ name: 'SequelizeUniqueConstraintError', parent: { code: '23505' } })],
    [
      'Prisma 7',
      error({ code: 'P2002', meta: { driverAdapterError: { cause: { code: '23505' } } } }),
    ],
    ['a wrapper with a code of its own', error({ code: 'ERR_WRAP', cause: { code: '23505' } })],
  ])('finds the SQLSTATE as %s wraps it', (_, wrapped) => {
    expect(sqlState(wrapped)).toBe('23505');
  });

  it.each([
    [undefined],
    [null],
    ['23505'],
    [error({ code: 'EPIPE' })],
    [error({ code: 23505 })],
    [error({ code: 'ECONNRESET' })],
  ])('finds none in %o', (value) => {
    expect(sqlState(value)).toBeUndefined();
  });

  it('survives cycles and long chains', () => {
    const cycle: Record<string, unknown> = {};
    cycle['cause'] = cycle;
    expect(sqlState(cycle)).toBeUndefined();
    expect(isConnectionLost(cycle)).toBe(false);
    let deep = error({ code: '40001' });
    for (let i = 0; i < 50; i++) deep = error({ cause: deep });
    expect(sqlState(deep)).toBeUndefined();
  });

  it.each([
    '57P01',
    '57P02',
    '57P03',
    '57P05',
    '25P03',
    '08006',
    'ECONNRESET',
    'CONNECTION_CLOSED',
  ])('takes %s for a lost connection', (code) => {
    expect(isConnectionLost(error({ cause: error({ code }) }))).toBe(true);
    expect(postgresError(error({ code }))).toMatchObject({ code: 'STORE_UNAVAILABLE' });
  });

  it('knows the messages node-postgres raises without a code', () => {
    expect(isConnectionLost(new Error('Connection terminated unexpectedly'))).toBe(true);
    expect(isConnectionLost(new Error('timeout exceeded when trying to connect'))).toBe(true);
    expect(isConnectionLost(error({ code: '23505', message: 'Connection terminated' }))).toBe(
      false,
    );
  });

  it('retries what the database rolled back, and only that', () => {
    for (const code of ['40001', '40P01']) expect(isConflict(error({ code }))).toBe(true);
    for (const code of ['23505', '25P02', '57014']) expect(isConflict(error({ code }))).toBe(false);
  });

  it('leaves the statement’s own errors alone, whatever the language of their text', () => {
    expect(postgresError(error({ code: '23505', message: 'clé dupliquée' }))).toBeUndefined();
    expect(postgresError(error({ code: '42P01', message: 'relation "orders"' }))).toBeUndefined();
    expect(
      postgresError(error({ code: '42P01', message: '« turngate_record » n’existe pas' })),
    ).toMatchObject({ code: 'STORE_SCHEMA_MISSING' });
    expect(postgresError(error({ code: '53300' }))).toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect(postgresError(error({ code: '25P01' }))).toMatchObject({ code: 'TRANSACTION_REQUIRED' });
  });
});

describe('errors of statements that are all ours', () => {
  const databases = [
    ['PostgreSQL', postgres.ourStoreError, { code: '53300' }],
    ['MySQL', mysql.ourStoreError, { errno: 1040 }],
    ['SQLite', sqlite.ourStoreError, { code: 'SQLITE_FULL' }],
  ] as const;

  it.each(databases)('%s: one it knows keeps its meaning and its advice', (name, toError, own) => {
    const cause = error(own);
    const message = expect.stringContaining(`${name} is not available`);
    const typed = toError(cause);
    expect(typed).toMatchObject({ code: 'STORE_UNAVAILABLE', message, cause, retryAfterMs: 1_000 });
    expect(toError(typed)).toBe(typed);
  });

  it.each(databases)('%s: one it does not know is the store failing', (name, toError) => {
    const cause = error({ code: 'whatever', message: 'the text of it' });
    const message = `${name} refused a statement of Turngate: the text of it`;
    expect(toError(cause)).toMatchObject({ code: 'STORE_UNAVAILABLE', message, cause });
  });

  it.each([mysql.endedError, sqlite.endedError])(
    'a transaction that ended is in doubt',
    (toError) => {
      const cause = error({});
      const message = expect.stringMatching(
        /^the transaction ended under the work: .* not protected$/,
      );
      const expected = { code: 'TRANSACTION_REQUIRED', outcome: 'unknown', message, cause };
      expect(toError(cause)).toMatchObject(expected);
    },
  );
});
