import { join } from 'node:path';
import { askRedis } from './ask.ts';
import { findProgram } from './program.ts';
import { redisArgs, redisUrl } from './redis.ts';
import { runToEnd } from './run-to-end.ts';
import { groupOf, type TestServerGroup } from './server-group.ts';
import { startServers } from './start-servers.ts';
import type { ServerNode } from './test-server.ts';
import { until } from './until.ts';

const START_TIMEOUT_MS = 30_000;
/** A failed master is replaced about twice this later. */
const NODE_TIMEOUT_MS = 1_000;

/** Options of {@link startRedisCluster}. */
export interface RedisClusterOptions {
  /** How many masters; Redis needs at least 3. @default 3 */
  readonly masters?: number;
  /** How many replicas each master has. @default 1 */
  readonly replicas?: number;
}

/**
 * Starts a Redis Cluster in about 3 s. The first `masters` nodes begin as masters, the others as
 * their replicas, linked and in step.
 */
export async function startRedisCluster(
  options: RedisClusterOptions = {},
): Promise<TestServerGroup> {
  const { masters = 3, replicas = 1 } = options;
  const program = findProgram('redis-server');
  const client = findProgram('redis-cli');
  const nodes = await startServers({
    name: 'cluster',
    nodes: masters * (1 + replicas),
    portsPerNode: 2,
    startTimeoutMs: START_TIMEOUT_MS,
    prepare: ({ dir, ports: [port = 0, busPort = 0] }) => ({
      name: 'Redis Cluster node',
      command: [program, ...redisArgs(port, dir), ...clusterArgs(busPort, dir)],
      url: redisUrl(port),
      isReady: async () => (await askRedis(port, 'PING')).startsWith('+PONG'),
    }),
  });
  const group = groupOf(nodes, nodes.map(({ url }) => url).join(','));
  try {
    const addresses = nodes.map(({ port }) => `127.0.0.1:${port}`);
    const create = [client, '--cluster', 'create', ...addresses, '--cluster-yes'];
    create.push('--cluster-replicas', String(replicas));
    await runToEnd('redis-cli --cluster create', create, '/', START_TIMEOUT_MS);
    await until('every node of the cluster is linked', START_TIMEOUT_MS, async () => {
      const checks = nodes.map((node, index) => isLinked(node, index < masters, replicas));
      return (await Promise.all(checks)).every(Boolean);
    });
    return group;
  } catch (error) {
    await group.stop();
    throw error;
  }
}

function clusterArgs(busPort: number, dir: string): string[] {
  const args = ['--cluster-enabled', 'yes', '--cluster-port', String(busPort)];
  args.push('--cluster-config-file', join(dir, 'nodes.conf'));
  args.push('--cluster-node-timeout', String(NODE_TIMEOUT_MS));
  // Without waiting for more replicas, the first copy begins 5 seconds earlier.
  return [...args, '--repl-diskless-sync-delay', '0'];
}

/** "State ok" comes seconds before replicas are in step, and a failover before that fails. */
async function isLinked(node: ServerNode, isMaster: boolean, replicas: number): Promise<boolean> {
  const answer = await askRedis(node.port, 'CLUSTER INFO', 'INFO replication');
  if (!answer.includes('cluster_state:ok')) return false;
  if (!isMaster) return answer.includes('master_link_status:up');
  const linked = [...answer.matchAll(/slave\d+:[^\r]*state=online/g)];
  return answer.includes('role:master') && linked.length === replicas;
}
