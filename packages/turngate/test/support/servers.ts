/** Suites that need a server of the test run. A missing one is skipped and counted, never passed. */
import { describe, inject, type ProvidedContext } from 'vitest';

const SERVERS = {
  postgres: 'postgresUrl',
  redis: 'redisUrl',
  mariadb: 'mariadbUrl',
  etcd: 'etcdUrl',
  zookeeper: 'zookeeperUrl',
} as const satisfies Record<string, keyof ProvidedContext>;

/** A server that `describeWith` can ask for. */
export type ServerName = keyof typeof SERVERS;

/** Address of a server of this run; empty when there is none. */
export function serverUrl(server: ServerName): string {
  return inject(SERVERS[server]);
}

/**
 * `describe` for tests that need servers. Without one of them all of its tests are skipped, which
 * the summary counts; where servers are required (`CI`, `TURNGATE_REQUIRE_SERVERS`) it fails.
 */
export function describeWith(
  servers: ServerName | readonly ServerName[],
  title: string,
  body: () => void,
): void {
  const missing = [servers].flat().filter((server) => serverUrl(server) === '');
  if (missing.length > 0) {
    const why = `no ${missing.join(', ')} in this test run`;
    if (process.env['CI'] || process.env['TURNGATE_REQUIRE_SERVERS']) throw new Error(why);
    console.warn(`SKIPPED "${title}": ${why}`);
  }
  describe.skipIf(missing.length > 0)(title, body);
}
