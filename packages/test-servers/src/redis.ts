import { askRedis } from './ask.ts';
import { findProgram } from './program.ts';
import { startServer } from './start-servers.ts';
import type { TestServer } from './test-server.ts';

const START_TIMEOUT_MS = 20_000;

/** Options of {@link startRedis}. */
export interface RedisOptions {
  /**
   * More arguments of `redis-server`; the last one of a name counts. Without `--appendonly yes`
   * nothing is on disk, and a restart forgets everything.
   */
  readonly args?: readonly string[];
}

/** Starts one Redis in about 50 ms. */
export async function startRedis(options: RedisOptions = {}): Promise<TestServer> {
  const program = findProgram('redis-server');
  return startServer({
    name: 'redis',
    portsPerNode: 1,
    startTimeoutMs: START_TIMEOUT_MS,
    prepare: ({ dir, port }) => ({
      name: 'Redis',
      command: [program, ...redisArgs(port, dir), ...(options.args ?? [])],
      url: redisUrl(port),
      isReady: async () => (await askRedis(port, 'PING')).startsWith('+PONG'),
    }),
  });
}

export function redisArgs(port: number, dir: string): string[] {
  const place = ['--port', String(port), '--bind', '127.0.0.1', '--dir', dir];
  return [...place, '--save', '', '--appendonly', 'no', '--protected-mode', 'no'];
}

export function redisUrl(port: number): string {
  return `redis://127.0.0.1:${port}`;
}
