import { join } from 'node:path';
import { findProgram } from './program.ts';
import { groupOf, type TestServerGroup } from './server-group.ts';
import { startServer, startServers } from './start-servers.ts';
import type { Place, Recipe, TestServer } from './test-server.ts';

const START_TIMEOUT_MS = 30_000;

/** Starts one etcd in about 0.2 s, or a cluster of `nodes`. */
export async function startEtcd(options?: { nodes?: 1 }): Promise<TestServer>;
export async function startEtcd(options: { nodes: 3 | 5 }): Promise<TestServerGroup>;
export async function startEtcd({
  nodes = 1,
}: {
  nodes?: 1 | 3 | 5;
} = {}): Promise<TestServer | TestServerGroup> {
  const program = findProgram('etcd');
  const plan = {
    name: 'etcd',
    portsPerNode: 2,
    startTimeoutMs: START_TIMEOUT_MS,
    prepare: (place: Place, places: readonly Place[]) => recipe(program, place, places),
  };
  if (nodes === 1) return startServer(plan);
  const servers = await startServers({ ...plan, nodes });
  return groupOf(servers, servers.map(({ url }) => url).join(','));
}

function recipe(program: string, place: Place, places: readonly Place[]): Recipe {
  const client = urlOf(place.ports[0]);
  const peer = urlOf(place.ports[1]);
  const members = places.map((other) => `${nameOf(other)}=${urlOf(other.ports[1])}`).join(',');
  const command = [program, '--name', nameOf(place), '--data-dir', join(place.dir, 'data')];
  command.push('--listen-client-urls', client, '--advertise-client-urls', client);
  command.push('--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer);
  command.push('--initial-cluster', members, '--log-level', 'error');
  // A new leader within a second: tests that kill the old one wait for it.
  if (places.length > 1) command.push('--heartbeat-interval', '50', '--election-timeout', '500');
  // etcd 3.4 refuses to run on other processors unless it is told to.
  const env = process.arch === 'x64' ? {} : { ETCD_UNSUPPORTED_ARCH: process.arch };
  return { name: 'etcd', command, env, url: client, isReady: () => isHealthy(client) };
}

async function isHealthy(url: string): Promise<boolean> {
  try {
    const answer = await fetch(`${url}/health`, { signal: AbortSignal.timeout(1_000) });
    return (await answer.text()).includes('"true"');
  } catch {
    return false;
  }
}

function nameOf(place: Place): string {
  return `n${place.port}`;
}

function urlOf(port: number | undefined): string {
  return `http://127.0.0.1:${port}`;
}
