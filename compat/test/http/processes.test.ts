/** What one process cannot show: two gates on one database, and a database that is away. */
import pg from 'pg';
import { createGate, onEvent } from 'turngate';
import { aesGcmCodec } from 'turngate/http';
import { postgres } from 'turngate/postgres';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { gatePromise, send, until } from './client.ts';
import { expressFrameworks } from './frameworks/express.ts';
import type { App, Framework, Route, World } from './world.ts';
import { postgresWorld } from './world.ts';

const postgresUrl = inject('postgresUrl' as never) as string;
const [express] = expressFrameworks as [Framework, ...Framework[]];

describe.skipIf(postgresUrl === '')('two processes on one PostgreSQL', () => {
  let world: World;
  let other: World;
  const apps: App[] = [];
  beforeAll(async () => {
    world = await postgresWorld(postgresUrl);
    other = world.sibling?.() as World;
  });
  afterAll(async () => {
    await Promise.all(apps.map((app) => app.close()));
    await other.close();
    await world.close();
  });

  /** The same route on both. */
  async function both(make: (world: World) => Route): Promise<[string, string]> {
    const made = await Promise.all([world, other].map((on) => express.start(on, [make(on)])));
    apps.push(...made);
    return made.map(({ url }) => url) as [string, string];
  }

  it.each(['wait', 'reject'] as const)('a repeat elsewhere: %s', async (inFlight) => {
    const hold = gatePromise();
    let runs = 0;
    const [here, there] = await both(() => ({
      path: `/${inFlight}`,
      options: { inFlight },
      async handle(call) {
        runs++;
        await hold.opened;
        await call.effect(`${inFlight}.`);
        return { status: 201, body: 'done' };
      },
    }));
    const first = send(`${here}/${inFlight}`, { key: 'k', body: '{"a":1}' });
    await until(() => runs === 1);
    const mismatch = await send(`${there}/${inFlight}`, { key: 'k', body: '{"a":2}' });
    expect(mismatch.status).toBe(422);
    const repeat = send(`${there}/${inFlight}`, { key: 'k', body: '{"a":1}' });
    if (inFlight === 'reject') expect((await repeat).status).toBe(409);
    hold.open();
    expect((await first).status).toBe(201);
    if (inFlight === 'wait') {
      const { status, text, headers } = await repeat;
      expect([status, text, headers['idempotent-replayed']]).toEqual([201, 'done', 'true']);
    }
    const late = await send(`${there}/${inFlight}`, { key: 'k', body: '{"a":1}' });
    expect([late.status, late.text, runs]).toEqual([201, 'done', 1]);
    expect(await world.lines(`${inFlight}.`)).toEqual([`${inFlight}.`]);
  });

  it('20 at once over both run once', async () => {
    let runs = 0;
    const urls = await both(() => ({
      path: '/race',
      async handle(call) {
        runs++;
        await call.effect('race.');
        return { status: 201, body: 'done' };
      },
    }));
    const all = Array.from({ length: 20 }, (_, i) =>
      send(`${urls[i % 2]}/race`, { key: 'k', body: '{}' }),
    );
    const answers = await Promise.all(all);
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`))).toEqual(
      new Set(['201 done']),
    );
    expect([runs, await world.lines('race.')]).toEqual([1, ['race.']]);
  });

  it('sealed responses lie in the database unreadable, and open elsewhere', async () => {
    const codec = aesGcmCodec({ keys: { a: Buffer.alloc(32, 7) }, current: 'a' });
    const [here, there] = await both(() => ({
      path: '/sealed',
      options: { codec },
      handle: () => ({ headers: { location: '/secret-place' }, body: 'secret-body' }),
    }));
    await send(`${here}/sealed`, { key: 'k', body: '{}' });
    const tx = await world.gate.operation({
      name: 'look',
      key: () => 'k',
      run: async (_: unknown, { tx }: { tx: pg.ClientBase }) =>
        (await tx.query('SELECT result FROM turngate_record')).rows.map(({ result }) => result),
    })({});
    expect(JSON.stringify(tx.value)).not.toMatch(/secret-/);
    const repeat = await send(`${there}/sealed`, { key: 'k', body: '{}' });
    expect([repeat.text, repeat.headers['location']]).toEqual(['secret-body', '/secret-place']);
  });
});

describe('a PostgreSQL that is away', () => {
  const pool = new pg.Pool({ connectionString: 'postgres://x:x@127.0.0.1:1/x', max: 2 });
  pool.on('error', () => undefined);
  const gate = createGate({ records: postgres(pool) });
  const away = { name: 'away', gate } as unknown as World;
  afterAll(() => pool.end());

  it('closed: 503 with Retry-After; open where the route says so, and told', async () => {
    let runs = 0;
    const handle = ({ tx }: { tx: unknown }): { body: string } => {
      runs++;
      return { body: String(tx) };
    };
    const app = await express.start(away, [
      { path: '/closed', handle },
      { path: '/open', options: { failOpen: true }, handle },
    ]);
    const closed = await send(`${app.url}/closed`, { key: 'k', body: '{}' });
    expect([closed.status, JSON.parse(closed.text).code, runs]).toEqual([
      503,
      'STORE_UNAVAILABLE',
      0,
    ]);
    expect(Number(closed.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    const told: string[] = [];
    const stop = onEvent('idempotency', ({ type }) => told.push(type));
    const open = await send(`${app.url}/open`, { key: 'k', body: '{}' });
    stop();
    expect([open.status, open.text, runs]).toEqual([200, 'undefined', 1]);
    expect(told).toContain('unprotected');
    await app.close();
  });
});
