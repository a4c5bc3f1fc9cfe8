/** The operators' part of the `turngate` command, as child processes on the compiled package. */
import { type ExecFileException, execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { describeWith, serverUrl } from '../support/servers.ts';
import { type Opened, openMariadb, openPostgres } from './targets.ts';

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const library = fileURLToPath(new URL('../..', import.meta.url));

interface Run {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Never a terminal: stdin is closed. */
function turngate(line: string, more: readonly string[] = []): Promise<Run> {
  const { DATABASE_URL: _, ...env } = process.env;
  const args = [main, ...line.split(' '), ...more];
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      args,
      { cwd: library, env },
      (error, stdout, stderr) => {
        const code = error === null ? 0 : Number((error as ExecFileException).code);
        resolve({ code, stdout, stderr });
      },
    );
    child.stdin?.end();
  });
}

describe('wrong usage of the operators’ verbs', () => {
  const pg = '--pg postgres://u:sesame@127.0.0.1:1/d';
  const one = '--operation a.b --key k';
  const cases: [string, string, string][] = [
    ['an area alone', 'records', 'say what to do: records list|inspect|release|purge'],
    ['a misspelt area', 'record list', 'did you mean records?'],
    ['a misspelt verb', `records relase ${pg}`, 'did you mean release?'],
    ['no database', 'records list', 'give --pg or --mysql, or set DATABASE_URL'],
    ['two databases', `records list ${pg} --mysql mysql://u:sesame@h/d`, 'one of --pg and --mysql'],
    ['an address of another kind', 'records list --pg mysql://u:sesame@h/d', '--pg must be'],
    ['a foreign option', `records list ${pg} --step x`, 'records list has no option --step'],
    ['no identity', `records inspect ${pg} --key k`, 'needs --operation'],
    ['no reason', `records release ${pg} ${one} --yes`, 'needs --reason'],
    ['no yes', `records release ${pg} ${one} --reason why`, 'add --yes'],
    ['a bad limit', `records list ${pg} --limit 0`, '--limit must be'],
    ['a time without a zone', `records list ${pg} --since 2026-11-29T10:00`, 'with its zone'],
    ['words too many', `records inspect k ${pg}`, 'takes no more words'],
    [
      'no verdict',
      `sagas resolve ${pg} ${one} --step s --reason why --yes`,
      'one of --happened <json> and --not-happened',
    ],
    ['redis for records', `records list ${pg} --redis redis://h`, 'no option --redis'],
  ];
  for (const [name, line, message] of cases) {
    it(`refuses ${name} with exit code 2 and nothing on stdout`, async () => {
      const { code, stdout, stderr } = await turngate(line);
      expect(stderr).toContain(message);
      expect([code, stdout]).toEqual([2, '']);
      expect(stderr).not.toContain('sesame');
    });
  }

  it('fails with code 1 and without the password when nobody answers', async () => {
    const { code, stdout, stderr } = await turngate(`records list ${pg}`);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain('STORE_UNAVAILABLE');
    expect(stderr).not.toContain('sesame');
  });
});

function laws(open: () => Promise<Opened>): void {
  let target: Opened;
  let at: string[];
  beforeAll(async () => {
    target = await open();
    at = [target.option, target.url];
  });
  afterAll(() => target?.close());
  const act = ['--reason', 'ticket 7', '--actor', 'ann', '--yes'];

  it('lists, inspects and releases a record; 3 when there is none', async () => {
    const pay = target.gate.operation({
      name: 'order.pay',
      key: (order: string) => order,
      run: () => ({ card: 'pan-4711', amount: 10n }),
    });
    await pay('order 1\u202e');
    const list = await turngate('records list --operation order.pay', at);
    expect(list).toMatchObject({ code: 0, stderr: '' });
    expect(list.stdout).toMatch(/^operation +scope +key +state/);
    expect(list.stdout).toContain('order 1�'); // What could turn a terminal round is not printed.
    const one = [...at, '--operation', 'order.pay', '--key', 'order 1\u202e'];
    const seen = await turngate('records inspect --json', one);
    expect(JSON.parse(seen.stdout)).toMatchObject({ state: 'done', expired: false });
    expect(seen.stdout).not.toContain('pan-4711');
    const whole = await turngate('records inspect --json --payload', one);
    expect(JSON.parse(whole.stdout).result).toEqual({ card: 'pan-4711', amount: '10' });
    expect(await turngate('records release', [...one, ...act])).toEqual({
      code: 0,
      stdout: 'done\n',
      stderr: '',
    });
    const again = await turngate('records release', [...one, ...act]);
    expect([again.code, again.stdout]).toEqual([3, '']);
    expect(again.stderr).toContain('there is none');
    expect((await turngate('records inspect', one)).code).toBe(3);
    const audit = await turngate('audit list --json', at);
    expect(JSON.parse(audit.stdout).lines).toMatchObject([
      { actor: 'ann', act: 'records.release', key: 'order 1\u202e', reason: 'ticket 7' },
    ]);
    const purged = await turngate('records purge --json', [...at, ...act]);
    expect(JSON.parse(purged.stdout)).toEqual({ purged: 0 });
  });

  it('parks and resumes a staged operation, also under the name of sagas', async () => {
    const work = target.gate.stagedOperation({
      name: 'order.ship',
      key: (order: string) => order,
      run: async (_, { step }) => await step('boom', () => Promise.reject(new Error('later'))),
    });
    await work('s-1').catch(() => undefined);
    const one = [...at, '--operation', 'order.ship', '--key', 's-1'];
    expect((await turngate('staged park', [...one, ...act])).stdout).toBe('done\n');
    const seen = await turngate('sagas inspect', one);
    expect(seen.stdout).toMatch(/state +parked/);
    expect(seen.stdout).toContain('\nsteps\n');
    expect((await turngate('sagas resume', [...one, ...act])).code).toBe(0);
    const list = await turngate('sagas list --state waiting --json', at);
    expect(JSON.parse(list.stdout).records).toMatchObject([{ id: { key: 's-1' } }]);
    const step = ['--step', 'none', '--not-happened'];
    const refused = await turngate('sagas resolve', [...one, ...step, ...act]);
    expect([refused.code, refused.stdout]).toEqual([1, '']);
    expect(refused.stderr).toContain('refused');
    expect((await turngate('staged release', [...one, ...act])).code).toBe(0);
  });

  it('takes a lock from its holder', async () => {
    await target.gate.acquire('stock:1', { leaseMs: 60_000 });
    const name = [...at, '--name', 'stock:1'];
    const seen = await turngate('locks inspect --json', name);
    expect(JSON.parse(seen.stdout)).toMatchObject({ name: 'stock:1' });
    expect((await turngate('locks release', [...name, ...act])).stdout).toBe('done\n');
    expect((await turngate('locks inspect', name)).code).toBe(3);
  });
}

describeWith('postgres', 'turngate records … on PostgreSQL', () => laws(openPostgres));
describeWith('mariadb', 'turngate records … on MariaDB', () =>
  laws(openMariadb as () => Promise<Opened>),
);

describeWith(['postgres', 'redis'], 'turngate locks … --redis', () => {
  it('works on locks in Redis and writes the audit line in the database', async () => {
    const target = await openPostgres();
    try {
      const { Redis } = await import('ioredis');
      const client = new Redis(serverUrl('redis'));
      const { redisLocks } = await import('../../src/stores/redis/index.ts');
      const locks = redisLocks(client, { wakeup: 'poll' });
      await locks.tryAcquire({ name: 'cli:1', owner: 'o', leaseMs: 60_000 });
      const at = ['--pg', target.url, '--redis', serverUrl('redis'), '--name', 'cli:1'];
      const seen = await turngate('locks inspect --json', at);
      expect(JSON.parse(seen.stdout)).toMatchObject({ name: 'cli:1', owner: 'o' });
      const act = ['--reason', 'why', '--yes'];
      expect((await turngate('locks release', [...at, ...act])).stdout).toBe('done\n');
      expect((await turngate('locks release', [...at, ...act])).code).toBe(3);
      const { lines } = await target.admin.audit.list({ key: 'cli:1' });
      expect(lines.map(({ outcome }) => outcome)).toEqual(['missing', 'done']);
      await client.quit();
    } finally {
      await target.close();
    }
  });
});
