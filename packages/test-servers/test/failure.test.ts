import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { findProgram, lookForProgram } from '../src/program.ts';
import { startRedis } from '../src/redis.ts';
import { startServers } from '../src/start-servers.ts';
import type { Place, Recipe } from '../src/test-server.ts';
import {
  commandLinesWith,
  describeWith,
  isAlive,
  isListening,
  ownTemporaryFiles,
  spawnOwner,
  startOwner,
  until,
} from './support.ts';

const START_TIMEOUT_MS = 5_000;

test('a program that is not there has a code of its own', () => {
  expect(lookForProgram('no-such-program')).toBe(undefined);
  expect(() => findProgram('no-such-program')).toThrow(
    expect.objectContaining({ code: 'MISSING', message: expect.stringContaining('npm test') }),
  );
});

/** Servers made of JavaScript; one is ready when it listens. */
function plan(scripts: readonly string[], startTimeoutMs = START_TIMEOUT_MS) {
  const ports: number[] = [];
  return {
    ports,
    name: 'plan',
    nodes: scripts.length,
    portsPerNode: 1,
    startTimeoutMs,
    prepare(place: Place, places: readonly Place[]): Recipe {
      ports.push(place.port);
      const script = scripts[places.findIndex(({ port }) => port === place.port)] ?? '';
      const command = [process.execPath, '-e', script];
      const isReady = () => isListening(place.port);
      return { name: 'Toy', command: [...command, String(place.port)], url: 'toy:', isReady };
    },
  };
}

const LISTEN = 'require("net").createServer().listen(Number(process.argv[1]), "127.0.0.1")';
const HANG = 'console.log("no port for anybody"); setInterval(() => {}, 1000)';
const FAIL = 'console.error("out of luck"); process.exit(3)';

for (const [how, scripts, message] of [
  ['ends', [LISTEN, FAIL], /Toy ended at once; its last log lines:\nout of luck/],
  ['is not ready in time', [LISTEN, HANG], /Toy was not ready within 1500 ms.*\nno port for/],
] as const) {
  test(`when one of several ${how}, the log is told and nothing is left`, async () => {
    const files = await ownTemporaryFiles();
    const toys = plan(scripts, 1_500);
    await expect(startServers(toys)).rejects.toMatchObject({
      code: 'START_FAILED',
      message: expect.stringMatching(message),
    });
    for (const port of toys.ports) expect(await isListening(port)).toBe(false);
    expect(await files.left()).toEqual([]);
  });
}

test('a command that does not exist is a failure like others', async () => {
  const files = await ownTemporaryFiles();
  const toys = plan([LISTEN, LISTEN]);
  const prepare: typeof toys.prepare = (place, places) => {
    const recipe = toys.prepare(place, places);
    return place.port === places[1]?.port ? { ...recipe, command: ['/no/such/file'] } : recipe;
  };
  await expect(startServers({ ...toys, prepare })).rejects.toThrow(
    /Toy ended at once.*\n.*no.such/,
  );
  for (const port of toys.ports) expect(await isListening(port)).toBe(false);
  expect(await files.left()).toEqual([]);
});

test('a port that somebody took meanwhile is replaced, though somebody answers there', async () => {
  const toys = plan([LISTEN]);
  const blocker = createServer();
  onTestFinished(() => void blocker.close());
  const prepare = async (place: Place, places: readonly Place[]) => {
    const recipe = toys.prepare(place, places);
    if (toys.ports.length > 1) return recipe;
    await new Promise<void>((resolve) => blocker.listen(place.port, '127.0.0.1', resolve));
    return recipe;
  };
  const [server] = await startServers({ ...toys, prepare });
  expect(toys.ports).toHaveLength(2);
  expect(server?.port).toBe(toys.ports[1]);
  await server?.stop();
});

describeWith(['redis-server'], 'Redis that does not start', () => {
  test('its own words are in the message', async () => {
    const files = await ownTemporaryFiles();
    const start = startRedis({ args: ['--maxmemory', 'plenty'] });
    await expect(start).rejects.toThrow(/argument must be a memory value/);
    expect(await files.left()).toEqual([]);
  });
});

const ALL = ['redis-server', 'mariadbd', 'etcd', 'java', 'zookeeper.jar', 'rabbitmq-server'];

describeWith(ALL, 'a killed test process', () => {
  test('leaves no server, port or file, also when one is paused', async () => {
    const files = await ownTemporaryFiles();
    const owner = await startOwner('Redis', 'Redis!', 'Mariadb', 'Etcd', 'Zookeeper', 'Rabbitmq');
    for (const { pid } of owner.servers) expect(isAlive(pid)).toBe(true);
    owner.process.kill('SIGKILL');
    await until('all servers are gone', () => !owner.servers.some(({ pid }) => isAlive(pid)));
    for (const { port } of owner.servers) expect(await isListening(port)).toBe(false);
    await until('all files are gone', async () => (await files.left()).length === 0);
  });

  test('leaves nothing while servers are only starting', async () => {
    const files = await ownTemporaryFiles();
    const owner = spawnOwner('Mariadb');
    await until('something was begun', async () => (await files.left()).length > 0);
    owner.kill('SIGKILL');
    await until('all files are gone', async () => (await files.left()).length === 0);
    const dir = process.env['TMPDIR'] ?? '';
    await until('no process works on them', () => commandLinesWith(dir).length === 0);
  });
});
