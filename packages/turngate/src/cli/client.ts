/** Opens the database of a url with whichever driver the user's project has. */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type AdminOptions, sqlAudit } from '../admin/index.ts';
import {
  type MysqlPool,
  migrate as migrateMysql,
  mysql,
  mysqlDatabase,
  mysqlLocks,
  mysqlStaged,
} from '../stores/mysql/index.ts';
import {
  type MigrationReport,
  migrate as migratePostgres,
  type PostgresClient,
  postgres,
  postgresDatabase,
  postgresLocks,
  postgresStaged,
} from '../stores/postgres/index.ts';

/** What the verbs of operators work on. */
export type AdminStores = Pick<AdminOptions, 'records' | 'staged' | 'locks' | 'audit'>;

/** A database that can be migrated and administered, and how to end its client. */
export interface OpenClient {
  migrate(): Promise<MigrationReport>;
  stores(): AdminStores;
  end(): Promise<void>;
}

const connectLimitSeconds = 10;

type Open = (module: never, url: string) => OpenClient;

/** Each driver's package and how to open it; the first one found is used. */
const postgresDrivers: Record<string, Open> = { pg: openPg, postgres: openPostgresJs };
const mysqlDrivers: Record<string, Open> = { mysql2: openMysql2 };

/** @throws Error when the project has no driver */
export async function openClient(url: string): Promise<OpenClient> {
  const isMysql = /^(mysql|mariadb):/.test(url);
  const drivers = isMysql ? mysqlDrivers : postgresDrivers;
  return await withDriver(drivers, isMysql ? 'MySQL' : 'PostgreSQL', url);
}

/**
 * Opens an address with the first of these packages that the user's project has.
 *
 * @throws Error when it has none
 */
export async function withDriver<Opened>(
  drivers: Record<string, (module: never, url: string) => Opened>,
  server: string,
  url: string,
): Promise<Opened> {
  // From the user's project, not from where this package lies: a global install has no drivers.
  const project = createRequire(join(process.cwd(), 'turngate'));
  for (const [name, open] of Object.entries(drivers)) {
    const path = resolved(project, name);
    if (path === undefined) continue;
    const module = (await import(pathToFileURL(path).href)) as { default: never };
    return open(module.default, url);
  }
  const names = Object.keys(drivers).join(' or ');
  throw new Error(`no ${server} driver in this project: npm install ${names}`);
}

function resolved(project: NodeJS.Require, name: string): string | undefined {
  try {
    return project.resolve(name);
  } catch {
    return undefined;
  }
}

type PgPool = PostgresClient & {
  end(): Promise<void>;
  on(event: 'error', listener: () => void): unknown;
};

function openPg(pg: { Pool: new (config: object) => PgPool }, url: string): OpenClient {
  const client = new pg.Pool({
    connectionString: url,
    max: 1,
    connectionTimeoutMillis: connectLimitSeconds * 1_000,
  });
  client.on('error', () => {}); // An idle connection that ends is no news here.
  return {
    migrate: () => migratePostgres(client),
    stores: () => postgresStores(client),
    end: () => client.end(),
  };
}

type PostgresJs = PostgresClient & { end(options: { timeout: number }): Promise<void> };

function openPostgresJs(
  postgres: (url: string, options: object) => PostgresJs,
  url: string,
): OpenClient {
  const options = { max: 1, connect_timeout: connectLimitSeconds, onnotice() {} };
  const client = postgres(url, options);
  return {
    migrate: () => migratePostgres(client),
    stores: () => postgresStores(client),
    end: () => client.end({ timeout: 5 }),
  };
}

function postgresStores(client: PostgresClient): AdminStores {
  return {
    records: postgres(client),
    staged: postgresStaged(client),
    locks: postgresLocks(client),
    audit: sqlAudit(postgresDatabase(client)),
  };
}

type Mysql2Pool = MysqlPool & { end(callback: (error: Error | null) => void): void };

function openMysql2(mysql2: { createPool(options: object): Mysql2Pool }, url: string): OpenClient {
  const uri = url.replace(/^mariadb:/, 'mysql:');
  const pool = mysql2.createPool({
    uri,
    connectionLimit: 1,
    connectTimeout: connectLimitSeconds * 1_000,
  });
  const end = (): Promise<void> =>
    new Promise((resolve, reject) => {
      pool.end((error) => (error ? reject(error) : resolve()));
    });
  const stores = (): AdminStores => ({
    records: mysql(pool),
    staged: mysqlStaged(pool),
    locks: mysqlLocks(pool),
    audit: sqlAudit(mysqlDatabase(pool)),
  });
  return { migrate: () => migrateMysql(pool), stores, end };
}
