import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { askRedis } from './ask.ts';
import { findProgram } from './program.ts';
import { redisUrl } from './redis.ts';
import { startServers } from './start-servers.ts';
import type { Place, Recipe, TestServer } from './test-server.ts';
import { until } from './until.ts';

const START_TIMEOUT_MS = 30_000;
const REPLICAS = 2;
const SENTINELS = 3;
const MASTER_NAME = 'tg';

/** One master, two replicas and three sentinels. */
export interface RedisSentinel extends AsyncDisposable {
  /** What the sentinels call the master. */
  readonly masterName: string;
  readonly sentinels: readonly TestServer[];
  /** The data nodes; the first begins as the master. */
  readonly nodes: readonly TestServer[];
  /** The node that most sentinels call the master now. */
  master(): Promise<TestServer>;
  stop(): Promise<void>;
}

/** Starts them in about 2 s. A dead master is replaced about 2 s later. */
export async function startRedisSentinel(): Promise<RedisSentinel> {
  const program = findProgram('redis-server');
  const nodes = await startServers({
    name: 'redis',
    nodes: 1 + REPLICAS,
    portsPerNode: 1,
    startTimeoutMs: START_TIMEOUT_MS,
    prepare: (place, places) => dataNode(program, place, places[0] as Place),
  });
  const servers = [...nodes];
  const stop = async () => void (await Promise.all(servers.map((server) => server.stop())));
  try {
    const masterPort = nodes[0]?.port ?? 0;
    // A sentinel looks for replicas only every 10 seconds, so they are there before it starts.
    await until('the replicas are linked', START_TIMEOUT_MS, async () => {
      const linked = (await askRedis(masterPort, 'INFO replication')).match(/state=online/g);
      return linked?.length === REPLICAS;
    });
    const sentinels = await startServers({
      name: 'sentinel',
      nodes: SENTINELS,
      portsPerNode: 1,
      startTimeoutMs: START_TIMEOUT_MS,
      prepare: (place) => sentinelNode(program, place, masterPort),
    });
    servers.push(...sentinels);
    await until('the sentinels know each other', START_TIMEOUT_MS, async () => {
      return (await Promise.all(sentinels.map(knowsAll))).every(Boolean);
    });
    const master = () => findMaster(sentinels, nodes);
    const masterName = MASTER_NAME;
    return { masterName, sentinels, nodes, master, stop, [Symbol.asyncDispose]: stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function dataNode(program: string, { dir, port }: Place, master: Place): Promise<Recipe> {
  const lines = configOf(port, dir, ['save ""', 'repl-diskless-sync-delay 0']);
  if (port !== master.port) lines.push(`replicaof 127.0.0.1 ${master.port}`);
  return recipe('Redis', [program], port, dir, lines);
}

async function sentinelNode(program: string, place: Place, masterPort: number): Promise<Recipe> {
  const { dir, port } = place;
  const lines = configOf(port, dir, [
    `sentinel monitor ${MASTER_NAME} 127.0.0.1 ${masterPort} 2`,
    `sentinel down-after-milliseconds ${MASTER_NAME} 1000`,
    `sentinel failover-timeout ${MASTER_NAME} 3000`,
  ]);
  return recipe('Redis Sentinel', [program, '--sentinel'], port, dir, lines);
}

function configOf(port: number, dir: string, more: readonly string[]): string[] {
  return [`port ${port}`, 'bind 127.0.0.1', 'protected-mode no', `dir "${dir}"`, ...more];
}

/** A file and not arguments: sentinels rewrite it, so a restarted node keeps its new role. */
async function recipe(
  name: string,
  [program = '', ...args]: readonly string[],
  port: number,
  dir: string,
  lines: readonly string[],
): Promise<Recipe> {
  const file = join(dir, 'redis.conf');
  await writeFile(file, `${lines.join('\n')}\n`);
  return {
    name,
    command: [program, file, ...args],
    url: redisUrl(port),
    isReady: async () => (await askRedis(port, 'PING')).startsWith('+PONG'),
  };
}

async function knowsAll({ port }: TestServer): Promise<boolean> {
  const answer = await askRedis(port, `SENTINEL MASTER ${MASTER_NAME}`);
  const value = (field: string) => new RegExp(`${field}\r\n\\$\\d+\r\n(\\d+)`).exec(answer)?.[1];
  return (
    value('num-other-sentinels') === String(SENTINELS - 1) &&
    value('num-slaves') === String(REPLICAS)
  );
}

async function findMaster(
  sentinels: readonly TestServer[],
  nodes: readonly TestServer[],
): Promise<TestServer> {
  const question = `SENTINEL GET-MASTER-ADDR-BY-NAME ${MASTER_NAME}`;
  const answers = await Promise.all(sentinels.map(({ port }) => askRedis(port, question)));
  const votes = answers.map((answer) =>
    nodes.findIndex(({ port }) => answer.includes(`\r\n${port}\r\n`)),
  );
  const index = votes.find((vote) => vote >= 0 && isMajority(votes, vote));
  if (index === undefined) throw new Error(`the sentinels do not agree: ${JSON.stringify(votes)}`);
  return nodes[index] as TestServer;
}

function isMajority(votes: readonly number[], vote: number): boolean {
  return votes.filter((other) => other === vote).length > votes.length / 2;
}
