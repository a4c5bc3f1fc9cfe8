import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ask } from './ask.ts';
import { findProgram } from './program.ts';
import { startServer } from './start-servers.ts';
import type { Place, Recipe, ServerNode, TestServer } from './test-server.ts';

const START_TIMEOUT_MS = 90_000;
const AMQP_HEADER = 'AMQP\u0000\u0000\u0009\u0001';
const EPMD_NAMES_REQUEST = '\u0000\u0001n';
/** A method frame on channel 0: `Connection.Start`, the answer to the header. */
const METHOD_FRAME = '\u0001';

/** Starts one RabbitMQ in about 5 s. */
export async function startRabbitmq(): Promise<TestServer> {
  const program = findProgram('rabbitmq-server');
  const epmd = await startEpmd();
  try {
    const server = await startServer({
      name: 'rabbit',
      portsPerNode: 2,
      startTimeoutMs: START_TIMEOUT_MS,
      prepare: (place) => prepare(program, place, epmd.port),
    });
    server.alsoStop(epmd);
    return server;
  } catch (error) {
    await epmd.stop();
    throw error;
  }
}

/** Erlang's name service. Were it not there, RabbitMQ would start one that outlives it. */
function startEpmd(): Promise<ServerNode> {
  const program = findProgram('epmd');
  return startServer({
    name: 'epmd',
    portsPerNode: 1,
    startTimeoutMs: START_TIMEOUT_MS,
    prepare: ({ port }) => ({
      name: 'epmd',
      command: [program, '-port', String(port), '-address', '127.0.0.1'],
      url: `epmd://127.0.0.1:${port}`,
      isReady: async () => (await ask(port, EPMD_NAMES_REQUEST)) !== '',
    }),
  });
}

async function prepare(program: string, place: Place, epmdPort: number): Promise<Recipe> {
  const { dir, port, ports } = place;
  const config = join(dir, 'rabbitmq.conf');
  await writeFile(config, `listeners.tcp.1 = 127.0.0.1:${port}\n`);
  return {
    name: 'RabbitMQ',
    command: [program],
    env: {
      HOME: dir,
      // Makes the script become the server, so that signals reach it and its number is known.
      RUNNING_UNDER_SYSTEMD: 'true',
      RABBITMQ_NODENAME: `tg${port}@localhost`,
      RABBITMQ_MNESIA_BASE: join(dir, 'data'),
      RABBITMQ_LOG_BASE: join(dir, 'log'),
      RABBITMQ_LOGS: '-',
      RABBITMQ_CONFIG_FILE: config,
      RABBITMQ_CONF_ENV_FILE: join(dir, 'none'),
      RABBITMQ_ENABLED_PLUGINS_FILE: join(dir, 'plugins'),
      RABBITMQ_PID_FILE: join(dir, 'pid'),
      RABBITMQ_DIST_PORT: String(ports[1]),
      ERL_EPMD_PORT: String(epmdPort),
      ERL_EPMD_ADDRESS: '127.0.0.1',
    },
    url: `amqp://guest:guest@127.0.0.1:${port}`,
    isReady: async () => (await ask(port, AMQP_HEADER)).startsWith(METHOD_FRAME),
  };
}
