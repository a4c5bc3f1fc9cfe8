import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { type FaultProxy, type ProxyVerdict, startProxy } from '../src/proxy.ts';
import { until } from './support.ts';

/** A server that remembers what it got and echoes it, behind a proxy that remembers too. */
async function startEcho(judge: (data: Buffer) => ProxyVerdict = () => 'pass') {
  const got: string[] = [];
  const seen: string[] = [];
  const filter = () => ({
    toServer: (data: Buffer) => {
      seen.push(data.toString());
      return judge(data);
    },
  });
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (data) => {
      got.push(data.toString());
      socket.write(data);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const proxy = await startProxy(`echo://u:p@127.0.0.1:${port}/path`, { filter });
  onTestFinished(async () => {
    await proxy.stop();
    await new Promise((resolve) => server.close(resolve));
  });
  return { proxy, got, seen };
}

interface Client {
  readonly socket: Socket;
  readonly answers: string[];
  closed: boolean;
}

async function connectTo(proxy: FaultProxy): Promise<Client> {
  const socket = connect(proxy.port, proxy.host);
  const client: Client = { socket, answers: [], closed: false };
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => {});
  socket.on('data', (data) => client.answers.push(data.toString()));
  socket.on('close', () => {
    client.closed = true;
  });
  await once(socket, 'connect');
  return client;
}

async function echoes(client: Client, word: string): Promise<void> {
  client.socket.write(word);
  await until(`"${word}" comes back`, () => client.answers.join('').includes(word));
}

test('keeps the url of the server but for the place', async () => {
  const { proxy } = await startEcho();
  expect(proxy.url).toBe(`echo://u:p@127.0.0.1:${proxy.port}/path`);
});

test('a blackhole closes nothing and loses everything; healing cuts who has lost bytes', async () => {
  const { proxy, got, seen } = await startEcho();
  const talker = await connectTo(proxy);
  const quiet = await connectTo(proxy);
  await echoes(talker, 'a');
  await echoes(quiet, 'b');
  proxy.blackhole();
  talker.socket.write('lost');
  const late = await connectTo(proxy);
  late.socket.end('too');
  await until('the proxy has both', () => seen.join('').length === 'ablosttoo'.length);
  expect([talker.closed, late.closed, quiet.closed]).toEqual([false, false, false]);
  proxy.heal();
  await until('the holes are closed', () => talker.closed && late.closed);
  await echoes(quiet, 'c');
  expect(got.join('')).toBe('abc');
});

test('what is held arrives after healing, in order, also from a client that is gone', async () => {
  const { proxy, got, seen } = await startEcho();
  const client = await connectTo(proxy);
  await echoes(client, 'early ');
  proxy.hold();
  client.socket.write('late ');
  await until('the proxy has the first', () => seen.includes('late '));
  client.socket.write('write');
  await until('the proxy has the second', () => seen.includes('write'));
  client.socket.destroy();
  expect(got.join('')).toBe('early ');
  proxy.heal();
  await until('it arrives', () => got.join('') === 'early late write');
});

test('a delay is kept in each direction and does not change the order', async () => {
  const { proxy, seen } = await startEcho();
  const client = await connectTo(proxy);
  proxy.delayMs = 300;
  const startMonoMs = performance.now();
  client.socket.write('1');
  await until('the proxy has it', () => seen.includes('1'));
  proxy.delayMs = 50;
  await echoes(client, '2');
  expect(performance.now() - startMonoMs).toBeGreaterThanOrEqual(345);
  expect(client.answers.join('')).toBe('12');
});

test('cutting closes what is open and lets new connections in; refusing does not', async () => {
  const { proxy } = await startEcho();
  const first = await connectTo(proxy);
  proxy.cut();
  await until('it is closed', () => first.closed);
  await echoes(await connectTo(proxy), 'in');
  proxy.refuse();
  const refused = await connectTo(proxy);
  await until('it is closed', () => refused.closed);
  proxy.heal();
  await echoes(await connectTo(proxy), 'in');
});

test('a filter sees what passes and may keep it', async () => {
  const { proxy, got, seen } = await startEcho((data) => (data.includes('bad') ? 'drop' : 'pass'));
  const client = await connectTo(proxy);
  await echoes(client, 'good');
  client.socket.write('bad');
  await until('the filter has it', () => seen.includes('bad'));
  await echoes(await connectTo(proxy), 'other');
  expect(got).toEqual(['good', 'other']);
});

test('the end of one direction is passed on, and the other goes on', async () => {
  const { proxy } = await startEcho();
  const client = await connectTo(proxy);
  client.socket.end('last words');
  await until('the answer comes after the end', () => client.answers.join('') === 'last words');
  await until('both halves are closed', () => proxy.connections === 0);
});
