import { existsSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { isAlive, query, temporaryDir } from '../test/helpers.ts';
import { type EmbeddedPostgresOptions, startEmbeddedPostgres } from './index.ts';

async function start(options: EmbeddedPostgresOptions) {
  const server = await startEmbeddedPostgres({ initNoSync: true, ...options });
  onTestFinished(() => server.stop('immediate'));
  return server;
}

test('keeps committed data over a stop and a new start', async () => {
  const dataDir = join(await temporaryDir(), 'not', 'there', 'yet');
  const first = await start({ dataDir, settings: { max_connections: '17' } });
  await query(first.url, 'create table note (text text)');
  await query(first.url, "insert into note values ('kept')");
  const settings =
    'select current_setting(name) as value from unnest($$' +
    '{max_connections,fsync,server_encoding,listen_addresses,unix_socket_directories}$$::text[]) name';
  const values = (await query(first.url, settings)).map((row) => row['value']);
  expect(values).toEqual(['17', 'on', 'UTF8', '127.0.0.1', '']);

  await Promise.all([first.stop(), first.stop()]);
  expect(isAlive(first.pid)).toBe(false);
  expect(await first.exited).toBe(0);
  await first.stop();

  const second = await start({ dataDir });
  expect(await query(second.url, 'select text from note')).toEqual([{ text: 'kept' }]);
});

test('asks for the password', async () => {
  const server = await start({ dataDir: await temporaryDir() });
  const wrong = server.url.replace(/:[0-9a-f]+@/, ':guess@');
  await expect(query(wrong, 'select 1')).rejects.toThrow('password authentication failed');
});

test('recovers committed data after SIGKILL of the server', async () => {
  const dataDir = await temporaryDir();
  const first = await start({ dataDir });
  await query(first.url, 'create table note as select 42 as answer');
  first.kill();
  expect(await first.exited).toBe(null);
  expect(existsSync(join(dataDir, 'pgdata', 'postmaster.pid'))).toBe(true);

  const second = await start({ dataDir });
  expect(await query(second.url, 'select answer from note')).toEqual([{ answer: 42 }]);
});

test('does not take an unrelated process for the server of a stale postmaster.pid', async () => {
  const dataDir = await temporaryDir();
  const first = await start({ dataDir });
  await first.stop();
  await writeFile(join(dataDir, 'pgdata', 'postmaster.pid'), `${process.ppid}\n${dataDir}\n`);
  const second = await start({ dataDir, startTimeoutMs: 10_000 });
  expect(await query(second.url, 'select 1 as one')).toEqual([{ one: 1 }]);
});

test('wipes a half-made cluster and makes a new one', async () => {
  const dataDir = await temporaryDir();
  await mkdir(join(dataDir, 'pgdata.partial-1-dead', 'base'), { recursive: true });
  await writeFile(join(dataDir, 'password'), '');
  const server = await start({ dataDir });
  expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  const names = await readdir(dataDir);
  expect(names.filter((name) => name.includes('partial'))).toEqual([]);
});

test('refuses a second start by the same process', async () => {
  const dataDir = await temporaryDir();
  await start({ dataDir });
  await expect(startEmbeddedPostgres({ dataDir })).rejects.toMatchObject({
    code: 'DATA_DIR_IN_USE',
    message: expect.stringContaining(`this process (${process.pid})`),
  });
});

test('reports why the server did not start, and lets the next start in', async () => {
  const dataDir = await temporaryDir();
  const blocker = createServer();
  await new Promise<void>((resolve) => blocker.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void blocker.close());
  const address = blocker.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  await expect(start({ dataDir, port })).rejects.toThrow(/Address already in use/);
  await expect(start({ dataDir, settings: { work_mem: 'much' } })).rejects.toThrow(/work_mem/);
  await start({ dataDir });
});

test('checks options before it touches anything', async () => {
  const dataDir = join(await temporaryDir(), 'untouched');
  for (const bad of [
    { port: 0 },
    { port: 1.5 },
    { startTimeoutMs: 0 },
    { settings: { port: '1' } },
  ]) {
    await expect(startEmbeddedPostgres({ dataDir, ...bad })).rejects.toThrow(RangeError);
  }
  expect(existsSync(dataDir)).toBe(false);
});
