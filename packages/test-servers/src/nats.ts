import { ask } from './ask.ts';
import { findProgram } from './program.ts';
import { startServer } from './start-servers.ts';
import type { TestServer } from './test-server.ts';

const START_TIMEOUT_MS = 20_000;

/** Starts one NATS server with JetStream in about 50 ms. */
export async function startNats(): Promise<TestServer> {
  const program = findProgram('nats-server');
  return startServer({
    name: 'nats',
    portsPerNode: 1,
    startTimeoutMs: START_TIMEOUT_MS,
    prepare: ({ dir, port }) => ({
      name: 'NATS',
      command: [program, '-a', '127.0.0.1', '-p', String(port), '-js', '-sd', dir],
      url: `nats://127.0.0.1:${port}`,
      isReady: async () => (await ask(port, '')).startsWith('INFO'),
    }),
  });
}
