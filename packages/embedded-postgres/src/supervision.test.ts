import { readdirSync, readFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { isAlive, query, startOwner, temporaryDir, until } from '../test/helpers.ts';
import { startEmbeddedPostgres } from './index.ts';

async function startHere(dataDir: string) {
  const server = await startEmbeddedPostgres({ dataDir });
  onTestFinished(() => server.stop('immediate'));
  return server;
}

for (const victim of ['process', 'process group'] as const) {
  test(`no server is left when the owning ${victim} is killed`, async () => {
    const dataDir = await temporaryDir();
    const owner = await startOwner(dataDir);
    await query(owner.url, 'create table note as select 7 as kept');

    process.kill(victim === 'process' ? owner.pid : -owner.pid, 'SIGKILL');
    await until('the server stops by itself', () => !isAlive(owner.serverPid));

    const next = await startHere(dataDir);
    expect(await query(next.url, 'select kept from note')).toEqual([{ kept: 7 }]);
  });
}

test('a start waits for the server of a dead owner instead of failing', async () => {
  const dataDir = await temporaryDir();
  const owner = await startOwner(dataDir);
  await query(owner.url, 'create table note as select 7 as kept');
  process.kill(owner.pid, 'SIGKILL');
  await until('the owner is dead', () => !isAlive(owner.pid));
  const next = await startHere(dataDir);
  expect(isAlive(owner.serverPid)).toBe(false);
  expect(await query(next.url, 'select kept from note')).toEqual([{ kept: 7 }]);
});

test('a server whose supervisor was killed too is stopped by the next start', async () => {
  const dataDir = await temporaryDir();
  const owner = await startOwner(dataDir);
  const supervisors = membersOfGroup(groupOf(owner.serverPid)).filter(
    (pid) => pid !== owner.serverPid,
  );
  for (const pid of supervisors) process.kill(pid, 'SIGSTOP');
  process.kill(owner.pid, 'SIGKILL');
  for (const pid of supervisors) process.kill(pid, 'SIGKILL');
  await until('the owner is dead', () => !isAlive(owner.pid));
  expect(isAlive(owner.serverPid)).toBe(true);

  const next = await startHere(dataDir);
  expect(isAlive(owner.serverPid)).toBe(false);
  expect(await query(next.url, 'select 1 as one')).toEqual([{ one: 1 }]);
});

test('Ctrl-C in a terminal, which signals the group of Node, does not reach the server', async () => {
  const owner = await startOwner(await temporaryDir());
  expect(groupOf(owner.serverPid)).not.toBe(groupOf(owner.pid));
});

test('a second owner is refused by a message that names the first', async () => {
  const dataDir = await temporaryDir();
  const owner = await startOwner(dataDir);
  await expect(startEmbeddedPostgres({ dataDir })).rejects.toMatchObject({
    code: 'DATA_DIR_IN_USE',
    message: expect.stringContaining(`process ${owner.pid}`),
  });
  expect(await query(owner.url, 'select 1 as one')).toEqual([{ one: 1 }]);
});

/** Field 5 of the process status, counted from the bracket that ends the command name. */
function groupOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[2]);
}

function membersOfGroup(group: number): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => isAlive(pid) && groupOf(pid) === group);
}
