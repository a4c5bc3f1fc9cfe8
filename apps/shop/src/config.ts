/** Settings from the environment, checked before anything starts. */
import { resolve } from 'node:path';
import { isDatabaseUrl } from './database/open.ts';
import { clockOf, integerOf, urlOf, zoneOf } from './env.ts';
import type { PageLimit } from './http/page-limit.ts';
import type { ArchiveSettings } from './trade/archive-job.ts';
import type { PageSettings } from './trade/product.ts';

/** How the service runs. */
export interface ShopConfig {
  readonly host: string;
  readonly port: number;
  /** False when PORT was left out: then the next free port will do. */
  readonly portFixed: boolean;
  /** An existing PostgreSQL, MySQL or MariaDB; undefined means the embedded PostgreSQL. */
  readonly databaseUrl: string | undefined;
  /** A RabbitMQ between the outbox and its consumers; undefined: they are in each process. */
  readonly amqpUrl: string | undefined;
  /** A Redis for locks, limits and cached pages; undefined means those of each process. */
  readonly locksUrl: string | undefined;
  readonly dataDir: string;
  readonly logLevel: string;
  /** Shared with the payment channel; it signs callbacks with it. */
  readonly channelSecret: string;
  /** An existing channel; undefined starts the simulated one as a process of its own. */
  readonly channelUrl: string | undefined;
  /** How many processes share the port. */
  readonly processes: number;
  /** A depot of its own for checkouts; undefined: the shop's own database has it. */
  readonly stockServiceUrl: string | undefined;
  /** Proves to the depot that it is the shop that asks. */
  readonly stockServiceSecret: string;
  readonly page: PageSettings & PageLimit;
  /** Undefined: nothing is archived. */
  readonly archive: ArchiveSettings | undefined;
}

/** For a shop on one's own machine only; `npm start` says so. */
export const developmentSecret = 'development-only';

const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];

/** @throws RangeError naming the variable, the allowed range and the value */
export function readConfig(env: NodeJS.ProcessEnv): ShopConfig {
  const databaseUrl = env['DATABASE_URL'] || undefined;
  if (databaseUrl !== undefined && !isDatabaseUrl(databaseUrl)) {
    throw new RangeError(
      'DATABASE_URL must start with postgres://, postgresql://, mysql:// or mariadb://',
    );
  }
  const logLevel = env['LOG_LEVEL'] || 'info';
  if (!logLevels.includes(logLevel)) {
    throw new RangeError(`LOG_LEVEL must be one of ${logLevels.join(', ')}; got "${logLevel}"`);
  }
  return {
    host: env['HOST'] || '127.0.0.1',
    port: integerOf(env, 'PORT', { min: 0, max: 65_535, fallback: 3000 }),
    portFixed: Boolean(env['PORT']),
    databaseUrl,
    locksUrl: urlOf(env, 'LOCKS_URL', ['redis://', 'rediss://']),
    amqpUrl: urlOf(env, 'AMQP_URL', ['amqp://', 'amqps://']),
    dataDir: resolve(env['TURNGATE_DATA_DIR'] || '.turngate'),
    logLevel,
    channelSecret: env['CHANNEL_SECRET'] || developmentSecret,
    channelUrl: env['CHANNEL_URL']?.replace(/\/+$/, '') || undefined,
    processes: integerOf(env, 'SHOP_PROCESSES', { min: 1, max: 64, fallback: 1 }),
    stockServiceUrl: env['STOCK_SERVICE_URL']?.replace(/\/+$/, '') || undefined,
    stockServiceSecret: env['STOCK_SERVICE_SECRET'] || developmentSecret,
    page: {
      freshMs: integerOf(env, 'PAGE_FRESH_MS', { min: 1, max: 3_600_000, fallback: 10_000 }),
      perSecond: integerOf(env, 'PAGE_PER_SECOND', { min: 0, max: 1_000_000, fallback: 1_000 }),
      burst: integerOf(env, 'PAGE_BURST', { min: 1, max: 1_000_000, fallback: 2_000 }),
    },
    archive: readArchive(env),
  };
}

function readArchive(env: NodeJS.ProcessEnv): ArchiveSettings | undefined {
  const afterDays = integerOf(env, 'ARCHIVE_AFTER_DAYS', { min: 0, max: 3_650, fallback: 90 });
  const at = clockOf(env, 'ARCHIVE_AT', '03:30');
  const timeZone = zoneOf(env, 'ARCHIVE_TIME_ZONE', 'UTC');
  return afterDays === 0 ? undefined : { afterDays, at, timeZone };
}
