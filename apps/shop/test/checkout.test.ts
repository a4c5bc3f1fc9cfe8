/** A checkout over two services: balance, stock and coupon together or not at all, whoever dies. */
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { openDatabase } from '../dist/database/open.js';
import { until } from './support/channel.ts';
import { type DepotProcess, spawnDepot } from './support/depot.ts';
import {
  type Answer,
  call,
  channelSecret,
  flood,
  freePort,
  freshDatabase,
  makeSku,
  onEachDatabase,
  type ShopProcess,
  spawnShop,
  startShop,
  type TestShop,
} from './support/shop.ts';

const price = 1250;

interface Place {
  readonly base: string;
  readonly depot: string;
}

const post = (url: string, body?: unknown): Promise<Answer> => call(url, 'POST', body);
const balanceOf = async (base: string, user: string): Promise<number> =>
  (await call(`${base}/api/accounts/${user}`)).body.balanceMinor;
const depotOf = async (place: Place, skuId: string): Promise<Record<string, unknown>> =>
  (await call(`${place.depot}/api/depot/${skuId}`)).body;
const violations = async (base: string): Promise<unknown> =>
  (await call(`${base}/api/audit`)).body.violations;

/** An article in the depot, and money. */
async function prepare(place: Place, units: number, user: string, amountMinor: number) {
  const skuId = await makeSku(place.base, 0);
  const supply = { supplyNo: 's1', units };
  expect((await post(`${place.depot}/api/depot/${skuId}/supplies`, supply)).status).toBe(201);
  const deposit = { txnNo: `d-${skuId}`, amountMinor };
  expect((await post(`${place.base}/api/accounts/${user}/deposits`, deposit)).status).toBe(201);
  return skuId;
}

onEachDatabase('checkout on one database', (serverUrl) => {
  let shop: TestShop;
  let place: Place;

  beforeAll(async () => {
    shop = await startShop(await freshDatabase(serverUrl));
    place = { base: shop.base, depot: shop.base };
  });
  afterAll(() => shop.stop());

  it('takes money, units and coupon together, once', async () => {
    const skuId = await prepare(place, 5, 'amy', 3 * price);
    await post(`${place.base}/api/coupons`, { couponId: 'c1', total: 1, perUser: 1 });
    const body = { userId: 'amy', checkoutNo: 'k1', skuId, units: 2, couponId: 'c1' };
    const answers = await flood(10, 10, () => post(`${place.base}/api/checkouts`, body));
    for (const { status, body: value } of answers) {
      expect([status, value.status, value.amountMinor]).toEqual([201, 'CONFIRMED', 2 * price]);
    }
    expect(new Set(answers.map(({ body: value }) => value.gid)).size).toBe(1);
    expect(await depotOf(place, skuId)).toEqual({ skuId, left: 3, held: 0, sold: 2 });
    expect(await balanceOf(place.base, 'amy')).toBe(price);
    const other = await post(`${place.base}/api/checkouts`, { ...body, units: 1 });
    expect(other.status).toBe(422);
    expect(await violations(place.base)).toEqual([]);
  });

  it('a "no" of any branch gives back what the others hold', async () => {
    const skuId = await prepare(place, 3, 'bob', 10 * price);
    await post(`${place.base}/api/coupons`, { couponId: 'c2', total: 1, perUser: 1 });
    await post(`${place.base}/api/coupons/c2/redeem`, { userId: 'somebody' });
    const ask = (checkoutNo: string, more: object): Promise<Answer> =>
      post(`${place.base}/api/checkouts`, { userId: 'bob', checkoutNo, skuId, units: 1, ...more });
    for (const [branch, more] of [
      ['balance', { userId: 'poor' }],
      ['stock', { units: 4 }],
      ['coupon', { couponId: 'c2' }],
    ] as const) {
      const first = await ask(`no-${branch}`, more);
      expect([first.status, first.body.code]).toEqual([first.status, 'TCC_CANCELLED']);
      expect(first.status).toBeLessThan(500);
      expect(first.body.data.branch).toBe(branch);
      const again = await ask(`no-${branch}`, more);
      expect([again.status, again.body.code]).toEqual([first.status, 'TCC_CANCELLED']);
    }
    expect(await depotOf(place, skuId)).toEqual({ skuId, left: 3, held: 0, sold: 0 });
    expect(await balanceOf(place.base, 'bob')).toBe(10 * price);
    expect(await violations(place.base)).toEqual([]);
  });

  it('sells exactly what the depot has when many check out at once', async () => {
    const skuId = await prepare(place, 10, 'eve', 100 * price);
    const answers = await flood(30, 15, (i) =>
      post(`${place.base}/api/checkouts`, { userId: 'eve', checkoutNo: `m${i}`, skuId, units: 1 }),
    );
    const codes = answers.map(({ status, body }) => body.code ?? status);
    expect(codes.filter((code) => code === 201)).toHaveLength(10);
    expect(codes.filter((code) => code === 'TCC_CANCELLED')).toHaveLength(20);
    expect(await depotOf(place, skuId)).toEqual({ skuId, left: 0, held: 0, sold: 10 });
    expect(await balanceOf(place.base, 'eve')).toBe(90 * price);
    expect(await violations(place.base)).toEqual([]);
  });
});

const hasBoth = inject('postgresUrl') !== '' && inject('mariadbUrl') !== '';

describe.skipIf(!hasBoth)('checkout over PostgreSQL and MariaDB in two processes', () => {
  let databaseUrl: string;
  let depotUrl: string;
  let depot: DepotProcess;
  let shop: ShopProcess;
  let env: Record<string, string>;
  let place: Place;

  beforeAll(async () => {
    databaseUrl = await freshDatabase(inject('postgresUrl'));
    depotUrl = await freshDatabase(inject('mariadbUrl'));
    depot = await spawnDepot(depotUrl);
    env = {
      DATABASE_URL: databaseUrl,
      STOCK_SERVICE_URL: depot.url,
      STOCK_SERVICE_SECRET: channelSecret,
      CHANNEL_URL: 'http://127.0.0.1:9',
      PORT: String(await freePort()),
    };
    shop = await spawnShop(env);
    place = { base: shop.base, depot: depot.url };
  });
  afterAll(async () => {
    await shop?.killGroup();
    await depot?.kill();
  });

  it('does not let a stranger speak for the shop', async () => {
    const headers = { 'turngate-gid': 'x', 'turngate-branch': 'stock', 'turngate-op': 'try' };
    expect((await call(`${depot.url}/branches/stock`, 'POST', {}, headers)).status).toBe(401);
  });

  it('conserves money, units and coupons through kill -9 of both, and ends every checkout', async () => {
    const rounds = 4;
    const each = 8;
    const skuId = await prepare(place, 20, 'zoe', 100 * price);
    await post(`${place.base}/api/coupons`, { couponId: 'cz', total: 25, perUser: 100 });
    const ask = (i: number): Promise<Answer> =>
      post(`${place.base}/api/checkouts`, {
        userId: 'zoe',
        checkoutNo: `z${i}`,
        skuId,
        units: 1,
        ...(i % 2 ? { couponId: 'cz' } : {}),
      });
    for (let round = 0; round < rounds; round++) {
      const asked = Array.from({ length: each }, (_, i) => ask(round * each + i));
      const settled = Promise.allSettled(asked);
      // The first has ended: the others are in the middle.
      await Promise.any(asked).catch(() => undefined);
      if (round % 2 === 0) {
        await depot.kill();
        depot = await spawnDepot(depotUrl, Number(new URL(depot.url).port));
      } else {
        await shop.killGroup();
        shop = await spawnShop(env);
      }
      await settled;
    }
    const ends: string[] = [];
    for (let i = 0; i < rounds * each; i++) {
      let last: Answer | undefined;
      await until(async () => {
        last = await ask(i);
        return last.status < 500 && last.body.code !== 'REQUEST_IN_PROGRESS';
      }, 90_000);
      ends.push(last?.body.code ?? last?.body.status);
    }
    const confirmed = ends.filter((end) => end === 'CONFIRMED').length;
    expect(new Set(ends)).toEqual(new Set(['CONFIRMED', 'TCC_CANCELLED']));
    expect(confirmed).toBeLessThanOrEqual(20);
    expect(await depotOf(place, skuId)).toEqual({
      skuId,
      left: 20 - confirmed,
      held: 0,
      sold: confirmed,
    });
    expect(await balanceOf(place.base, 'zoe')).toBe((100 - confirmed) * price);
    expect(await violations(place.base)).toEqual([]);
    expect(await violations(place.depot)).toEqual([]);
    expect(await openBranches()).toEqual([[], []]);
  });

  /** Branches that are still tried, on both sides. */
  async function openBranches(): Promise<unknown[][]> {
    const sides = [databaseUrl, depotUrl].map(async (url) => {
      const side = openDatabase(url, () => undefined);
      const { rows } = await side.database.query(
        "SELECT gid, branch FROM turngate_branch WHERE state = 'TRIED'",
        [],
      );
      await side.end();
      return [...rows];
    });
    return await Promise.all(sides);
  }
});
