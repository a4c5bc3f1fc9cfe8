/** ZooKeeper for tests: clients, and a server that allows sessions as long as any lease. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lookForProgram, servesSessions } from '@turngate/test-servers';
import { type Client, createClient } from 'node-zookeeper-client';
import type { ZookeeperClientLike } from '../../src/stores/zookeeper/index.ts';
import { until } from './clock.ts';

export type { Client } from 'node-zookeeper-client';

/**
 * A client that is connected. The library waits for the answer to its first packet as long as the
 * session would last; a server that has just started may have lost it, so another client tries.
 */
export async function connectZookeeper(url: string, sessionTimeout = 30_000): Promise<Client> {
  for (let triesLeft = 5; ; triesLeft--) {
    const client = newClient(url, sessionTimeout);
    client.connect();
    const isThere = (): boolean => client.getState().getName() === 'SYNC_CONNECTED';
    try {
      await until('the session is there', isThere);
      return client;
    } catch (error) {
      client.close();
      if (triesLeft === 0) throw error;
    }
  }
}

/** A client that is not connected yet. */
export function newClient(url: string, sessionTimeout = 30_000): Client {
  return createClient(url, { sessionTimeout, spinDelay: 50 });
}

/**
 * Ends the session of a client as if it had expired: a twin takes the session and closes it. The
 * client may take it back before the twin is through, so it is tried until the client is told.
 */
export async function endSession(client: Client, url: string): Promise<void> {
  let expired = false;
  client.once('expired', () => {
    expired = true;
  });
  while (!expired) {
    const twin = createClient(url, {
      sessionTimeout: client.getSessionTimeout(),
      sessionId: client.getSessionId(),
      sessionPassword: client.getSessionPassword(),
      retries: 0,
    });
    let left = false;
    let tooLate = false;
    twin.once('connected', () => twin.close());
    twin.once('expired', () => {
      tooLate = true;
    });
    twin.once('disconnected', () => {
      left = true;
    });
    twin.connect();
    await until('the twin has gone or the session has', () => left || expired);
    twin.close();
    await until('the client is told', () => expired, 300).catch(() => undefined);
    // Back just as the session ended, it has a connection on which the server says nothing.
    if (tooLate && !expired) socketOf(client)?.destroy();
  }
}

function socketOf(client: Client): { destroy(): unknown } | undefined {
  return (client as ZookeeperClientLike).connectionManager?.socket;
}

/** Every path under one. */
export async function pathsUnder(client: Client, path: string): Promise<string[]> {
  const children = await new Promise<readonly string[]>((resolve) => {
    client.getChildren(path, (error, names) => resolve(error ? [] : (names ?? [])));
  });
  const below = await Promise.all(children.map((name) => pathsUnder(client, `${path}/${name}`)));
  return [...children.map((name) => `${path}/${name}`), ...below.flat()];
}

/** A server whose sessions may last two minutes. */
export interface LongSessionZookeeper {
  readonly url: string;
  /** SIGKILL, then again on the same data. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a server whose sessions may last two minutes; the shared one allows ten seconds. */
export async function startLongSessionZookeeper(): Promise<LongSessionZookeeper> {
  const jar = lookForProgram('zookeeper.jar');
  if (jar === undefined) throw new Error('no zookeeper.jar');
  const dir = await mkdtemp(join(tmpdir(), 'tg-zk-'));
  const port = await freePort();
  const config = [
    `dataDir=${dir}`,
    `clientPort=${port}`,
    'clientPortAddress=127.0.0.1',
    'tickTime=500',
    'minSessionTimeout=1000',
    'maxSessionTimeout=120000',
    'maxClientCnxns=0',
    'admin.enableServer=false',
    '4lw.commands.whitelist=*',
  ];
  await writeFile(join(dir, 'zoo.cfg'), config.join('\n'));
  const main = 'org.apache.zookeeper.server.quorum.QuorumPeerMain';
  const jvm = ['-Xmx256m', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC'];
  const start = (): ChildProcess =>
    spawn('java', [...jvm, '-cp', jar, main, join(dir, 'zoo.cfg')], { stdio: 'ignore' });
  let child = start();
  const onExit = (): void => void child.kill('SIGKILL');
  process.once('exit', onExit);
  const kill = async (): Promise<void> => {
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  };
  const answers = (): Promise<void> =>
    until('ZooKeeper serves', () => servesSessions(port), 60_000);
  await answers();
  return {
    url: `127.0.0.1:${port}`,
    async restart() {
      await kill();
      child = start();
      await answers();
    },
    async stop() {
      process.off('exit', onExit);
      await kill();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
