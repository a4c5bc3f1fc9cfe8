/** Election and single flight between real processes: locks in PostgreSQL, the cache in Redis. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { until } from '../support/clock.ts';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';
import { describeWith, serverUrl } from '../support/servers.ts';

type Message = Record<string, unknown>;
interface Member {
  readonly process: ChildProcess;
  readonly said: Message[];
}

describeWith(['postgres', 'redis'], 'uses of locks between processes', () => {
  let database: TestDatabase;
  let redis: Redis;
  let count = 0;
  const members: Member[] = [];

  beforeAll(async () => {
    database = await createDatabase();
    redis = new Redis(serverUrl('redis'));
  });
  afterAll(async () => {
    await redis?.quit();
    await database?.drop();
  });
  afterEach(async () => {
    for (const { process: child } of members.splice(0)) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
  });

  const newName = (): string => `uses-${process.pid}-${++count}`;

  function start(role: string, name: string, number: number): Member {
    const script = fileURLToPath(new URL('uses-child.mjs', import.meta.url));
    const args = [role, database.url, serverUrl('redis'), name, String(number)];
    const member: Member = { process: fork(script, args), said: [] };
    member.process.on('message', (message) => member.said.push(message as Message));
    members.push(member);
    return member;
  }

  /** Four readers that are ready to go. */
  async function readers(name: string): Promise<Member[]> {
    const four = [1, 2, 3, 4].map(() => start('reader', name, 250));
    await until('all are ready', () => four.every(({ said }) => said.length > 0), 30_000);
    return four;
  }

  const valuesOf = ({ said }: Member): unknown => said.find(({ values }) => values)?.['values'];

  it('1,000 readers in four processes cause one load', async () => {
    const name = newName();
    const four = await readers(name);
    for (const { process: child } of four) child.send('go');
    await until('all have read', () => four.every((one) => valuesOf(one) !== undefined), 60_000);
    expect(four.map(valuesOf)).toEqual(Array(4).fill(['value 1']));
    expect(await redis.get(`${name}:loads`)).toBe('1');
  });

  it('a loader that is killed is followed by exactly one other', async () => {
    const name = newName();
    await redis.set(`${name}:hang`, '1');
    const four = await readers(name);
    for (const { process: child } of four) child.send('go');
    const loader = (): Member | undefined =>
      four.find(({ said }) => said.some((m) => m['loading']));
    await until('one loads', () => loader() !== undefined, 30_000);
    const killed = loader() as Member;
    killed.process.kill('SIGKILL');
    const rest = four.filter((member) => member !== killed);
    await until(
      'the rest has read',
      () => rest.every((one) => valuesOf(one) !== undefined),
      60_000,
    );
    expect(rest.map(valuesOf)).toEqual(Array(3).fill(['value 2']));
    expect(await redis.get(`${name}:loads`)).toBe('2');
  });

  const fenceOf = ({ said }: Member): bigint | undefined => {
    const last = said.at(-1)?.['elected'];
    return last === undefined ? undefined : BigInt(last as string);
  };

  it('a killed leader is followed within its lease, by a higher fence', async () => {
    const leaseMs = 1_000;
    const name = newName();
    const three = [1, 2, 3].map(() => start('leader', name, leaseMs));
    const leaders = (): Member[] => three.filter((one) => fenceOf(one) !== undefined);
    await until('there is a leader', () => leaders().length === 1, 30_000);
    const first = leaders()[0] as Member;
    const fence = fenceOf(first) as bigint;
    first.process.kill('SIGKILL');
    const killedMs = performance.now();
    await until('there is another', () => leaders().some((one) => one !== first), 30_000);
    // The lease, one poll of a waiter (250 ms) and what a busy machine adds.
    expect(performance.now() - killedMs).toBeLessThan(leaseMs + 1_500);
    const next = leaders().find((one) => one !== first) as Member;
    expect((fenceOf(next) as bigint) > fence).toBe(true);
    expect(three.flatMap(({ said }) => said).filter((message) => message['error'])).toEqual([]);
  });

  it('a stopped leader learns of its loss when it goes on, and another one leads', async () => {
    const name = newName();
    const two = [1, 2].map(() => start('leader', name, 600));
    await until('there is a leader', () => two.some((one) => fenceOf(one) !== undefined), 30_000);
    const [first, second] = (
      fenceOf(two[0] as Member) === undefined ? [...two].reverse() : two
    ) as [Member, Member];
    first.process.kill('SIGSTOP');
    await until('the other leads', () => fenceOf(second) !== undefined, 30_000);
    first.process.kill('SIGCONT');
    await until('the first is told', () => first.said.some((m) => m['lost'] === 'LOCK_LOST'));
    expect(second.said.filter((message) => message['lost'])).toEqual([]);
  });
});
