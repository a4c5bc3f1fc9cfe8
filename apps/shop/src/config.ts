/** Settings from the environment, checked before anything starts. */
import { resolve } from 'node:path';

/** How the service runs. */
export interface ShopConfig {
  readonly host: string;
  readonly port: number;
  /** False when PORT was left out: then the next free port will do. */
  readonly portFixed: boolean;
  /** An existing PostgreSQL; undefined means the embedded one. */
  readonly databaseUrl: string | undefined;
  readonly dataDir: string;
  readonly logLevel: string;
}

const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];

/** @throws RangeError naming the variable, the allowed range and the value */
export function readConfig(env: NodeJS.ProcessEnv): ShopConfig {
  const port = env['PORT'] === undefined || env['PORT'] === '' ? undefined : Number(env['PORT']);
  if (port !== undefined && (!Number.isInteger(port) || port < 0 || port > 65_535)) {
    throw new RangeError(`PORT must be an integer from 0 to 65535; got "${env['PORT']}"`);
  }
  const databaseUrl = env['DATABASE_URL'] || undefined;
  if (databaseUrl !== undefined && !/^postgres(ql)?:\/\//.test(databaseUrl)) {
    throw new RangeError('DATABASE_URL must start with postgres:// or postgresql://');
  }
  const logLevel = env['LOG_LEVEL'] || 'info';
  if (!logLevels.includes(logLevel)) {
    throw new RangeError(`LOG_LEVEL must be one of ${logLevels.join(', ')}; got "${logLevel}"`);
  }
  return {
    host: env['HOST'] || '127.0.0.1',
    port: port ?? 3000,
    portFixed: port !== undefined,
    databaseUrl,
    dataDir: resolve(env['TURNGATE_DATA_DIR'] || '.turngate'),
    logLevel,
  };
}
