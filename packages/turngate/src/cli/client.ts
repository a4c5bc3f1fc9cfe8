/** Opens a client with whichever PostgreSQL driver the user's project has. */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { PostgresClient } from '../stores/postgres/index.ts';

/** A client and how to end it. */
export interface OpenClient {
  readonly client: PostgresClient;
  end(): Promise<void>;
}

const connectLimitSeconds = 10;

/** Each driver's package and how to open it; the first one found is used. */
const drivers: Record<string, (module: never, url: string) => OpenClient> = {
  pg: openPg,
  postgres: openPostgresJs,
};

/** @throws Error when the project has no driver */
export async function openClient(url: string): Promise<OpenClient> {
  // From the user's project, not from where this package lies: a global install has no drivers.
  const project = createRequire(join(process.cwd(), 'turngate'));
  for (const [name, open] of Object.entries(drivers)) {
    const path = resolved(project, name);
    if (path === undefined) continue;
    const module = (await import(pathToFileURL(path).href)) as { default: never };
    return open(module.default, url);
  }
  const names = Object.keys(drivers).join(' or ');
  throw new Error(`no PostgreSQL driver in this project: npm install ${names}`);
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
  return { client, end: () => client.end() };
}

type PostgresJs = PostgresClient & { end(options: { timeout: number }): Promise<void> };

function openPostgresJs(
  postgres: (url: string, options: object) => PostgresJs,
  url: string,
): OpenClient {
  const options = { max: 1, connect_timeout: connectLimitSeconds, onnotice() {} };
  const client = postgres(url, options);
  return { client, end: () => client.end({ timeout: 5 }) };
}
