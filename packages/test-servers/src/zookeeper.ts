import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ask } from './ask.ts';
import { findProgram } from './program.ts';
import { groupOf, type TestServerGroup } from './server-group.ts';
import { startServer, startServers } from './start-servers.ts';
import type { Place, Recipe, TestServer } from './test-server.ts';

const START_TIMEOUT_MS = 60_000;
/** Client and, in an ensemble, two among the servers. */
const PORTS_PER_NODE = 3;
const MAIN = 'org.apache.zookeeper.server.quorum.QuorumPeerMain';
/** Starting fast matters more than the last bit of speed. */
const JVM = ['-Xmx256m', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC'];

/**
 * Starts one ZooKeeper in about half a second, or an ensemble of `nodes`. The url is a connect
 * string `127.0.0.1:PORT[,…]`. A session may be as short as 1 s; the tick is 0.5 s.
 */
export async function startZookeeper(options?: { nodes?: 1 }): Promise<TestServer>;
export async function startZookeeper(options: { nodes: 3 | 5 }): Promise<TestServerGroup>;
export async function startZookeeper({
  nodes = 1,
}: {
  nodes?: 1 | 3 | 5;
} = {}): Promise<TestServer | TestServerGroup> {
  const command = [findProgram('java'), ...JVM, '-cp', findProgram('zookeeper.jar'), MAIN];
  const plan = {
    name: 'zk',
    portsPerNode: PORTS_PER_NODE,
    startTimeoutMs: START_TIMEOUT_MS,
    prepare: (place: Place, places: readonly Place[]) => prepare(command, place, places),
  };
  if (nodes === 1) return startServer(plan);
  const servers = await startServers({ ...plan, nodes });
  return groupOf(servers, servers.map(({ url }) => url).join(','));
}

async function prepare(
  command: readonly string[],
  { dir, port }: Place,
  places: readonly Place[],
): Promise<Recipe> {
  const dataDir = join(dir, 'data');
  const config = join(dir, 'zoo.cfg');
  await mkdir(dataDir);
  await writeFile(config, configOf(dataDir, port, places));
  if (places.length > 1) {
    const number = places.findIndex((place) => place.port === port) + 1;
    await writeFile(join(dataDir, 'myid'), String(number));
  }
  return {
    name: 'ZooKeeper',
    command: [...command, config],
    url: `127.0.0.1:${port}`,
    isReady: () => servesSessions(port),
  };
}

/**
 * Does the ZooKeeper at this port take sessions? "ruok" is answered by whoever does not yet, a mode is
 * only told afterwards, and a connection that comes while it starts may get no answer at all.
 */
export async function servesSessions(port: number): Promise<boolean> {
  return (await ask(port, 'srvr', () => false)).includes('Mode:');
}

function configOf(dataDir: string, port: number, places: readonly Place[]): string {
  const lines = [`dataDir=${dataDir}`, `clientPort=${port}`, 'clientPortAddress=127.0.0.1'];
  lines.push('tickTime=500', 'minSessionTimeout=1000', 'maxClientCnxns=0');
  lines.push('admin.enableServer=false', '4lw.commands.whitelist=*');
  if (places.length > 1) {
    lines.push('initLimit=10', 'syncLimit=5');
    for (const [index, { ports }] of places.entries())
      lines.push(`server.${index + 1}=127.0.0.1:${ports[1]}:${ports[2]}`);
  }
  return `${lines.join('\n')}\n`;
}
