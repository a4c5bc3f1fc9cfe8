import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { ask, askRedis } from '../src/ask.ts';
import {
  startEtcd,
  startMariadb,
  startNats,
  startRabbitmq,
  startRedis,
  startZookeeper,
  type TestServer,
} from '../src/index.ts';
import { describeWith, isAlive, isListening, ownTemporaryFiles } from './support.ts';

interface Kind {
  readonly name: string;
  readonly programs: readonly string[];
  start(): Promise<TestServer>;
}

const KINDS: readonly Kind[] = [
  { name: 'Redis', programs: ['redis-server'], start: startRedis },
  { name: 'MariaDB', programs: ['mariadbd'], start: startMariadb },
  { name: 'etcd', programs: ['etcd'], start: () => startEtcd() },
  { name: 'ZooKeeper', programs: ['java', 'zookeeper.jar'], start: () => startZookeeper() },
  { name: 'RabbitMQ', programs: ['rabbitmq-server'], start: startRabbitmq },
  { name: 'NATS', programs: ['nats-server'], start: startNats },
];

for (const { name, programs, start } of KINDS) {
  describeWith(programs, name, () => {
    test('listens when started, is gone when killed, comes back on its port, leaves nothing', async () => {
      const files = await ownTemporaryFiles();
      await using server = await start();
      expect(await isListening(server.port)).toBe(true);
      const firstPid = server.pid;
      expect(isAlive(firstPid)).toBe(true);

      await server.kill();
      expect(isAlive(firstPid)).toBe(false);
      expect(await isListening(server.port)).toBe(false);

      await server.restart();
      expect(server.pid).not.toBe(firstPid);
      expect(await isListening(server.port)).toBe(true);
      expect(await files.left()).not.toEqual([]);

      await server.stop();
      expect(isAlive(server.pid)).toBe(false);
      expect(await isListening(server.port)).toBe(false);
      expect(await files.left()).toEqual([]);
      await expect(server.restart()).rejects.toThrow(/its data is gone/);
    });
  });
}

async function starting(start: Promise<TestServer>): Promise<TestServer> {
  const server = await start;
  onTestFinished(() => server.stop());
  return server;
}

describeWith(['redis-server'], 'Redis in detail', () => {
  test('starts without waiting for anything but readiness', async () => {
    const startsMs: number[] = [];
    for (let round = 0; round < 5; round++) {
      const startMonoMs = performance.now();
      await using _server = await startRedis();
      startsMs.push(performance.now() - startMonoMs);
    }
    // 80 ms on an idle machine. Wide, because this one does other things too.
    expect(Math.min(...startsMs)).toBeLessThan(1_000);
  });

  for (const durable of [true, false]) {
    test(`a restart ${durable ? 'keeps what is on disk' : 'forgets what is not'}`, async () => {
      const args = durable ? ['--appendonly', 'yes', '--appendfsync', 'always'] : [];
      const server = await starting(startRedis({ args }));
      await askRedis(server.port, 'SET kept 7');
      await server.kill();
      await server.restart();
      expect((await askRedis(server.port, 'GET kept')).includes('7')).toBe(durable);
    });
  }

  test('a paused server takes connections and answers nothing until it is resumed', async () => {
    const server = await starting(startRedis());
    await server.pause();
    expect(await isListening(server.port)).toBe(true);
    expect(await ask(server.port, 'PING\r\n')).toBe('');
    await server.resume();
    expect(await ask(server.port, 'PING\r\n')).toBe('+PONG\r\n');
  });

  test('a paused server can be restarted and stopped', async () => {
    const server = await starting(startRedis());
    await server.pause();
    await server.restart();
    expect(await ask(server.port, 'PING\r\n')).toBe('+PONG\r\n');
    await server.pause();
    await server.stop();
    expect(await isListening(server.port)).toBe(false);
  });
});

describeWith(['mariadbd', 'mariadb'], 'MariaDB in detail', () => {
  test('its user may create databases, and what is committed outlives a kill', async () => {
    const server = await starting(startMariadb());
    await sql(server, 'CREATE DATABASE d; CREATE TABLE d.t AS SELECT 7 AS kept');
    await server.kill();
    await server.restart();
    expect(await sql(server, 'SELECT kept FROM d.t')).toBe('kept\n7\n');
  });
});

describeWith(['etcd'], 'etcd in detail', () => {
  test('what was put outlives a kill', async () => {
    const server = await starting(startEtcd());
    const key = Buffer.from('kept').toString('base64');
    const value = Buffer.from('7').toString('base64');
    await post(`${server.url}/v3/kv/put`, { key, value });
    await server.kill();
    await server.restart();
    expect(await post(`${server.url}/v3/kv/range`, { key })).toMatchObject({ kvs: [{ value }] });
  });
});

async function sql({ host, port }: TestServer, statements: string): Promise<string> {
  const args = ['--no-defaults', `--host=${host}`, `--port=${port}`, '--user=tg', '--password=tg'];
  return (await promisify(execFile)('mariadb', [...args, '-e', statements])).stdout;
}

async function post(url: string, body: unknown): Promise<unknown> {
  return (await fetch(url, { method: 'POST', body: JSON.stringify(body) })).json();
}
