/**
 * The checkout over two databases while every process, the database servers too, is killed with -9 at
 * random: `TURNGATE_KILL_MS=300000` for five minutes, a few seconds by default.
 */
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { type Chance, createChance } from '../dist/lab/chance.js';
import { until } from './support/channel.ts';
import { type Books, type Ending, openBooks } from './support/checkout-books.ts';
import { type KillSite, startKillSite, type Victim } from './support/kill-site.ts';
import { type Answer, call } from './support/shop.ts';

const killMs = Number(process.env['TURNGATE_KILL_MS'] ?? 8_000);
const seed = Number(process.env['TURNGATE_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
/** The longest pause between two attempts, the lease, and the sweep that takes it up. */
const retryBoundMs = 300_000 + 5_000 + 5_000;
const attemptsMax = 200;
const price = 100;
const customers = 4;
const depositMinor = 20_000_000;
const supply = { tea: 1_000_000, rare: 40 };
const couponTotal = 60;
const lanes = 16;
const peaceMaxMs = Math.min(6_000, Math.ceil(killMs / 5));
const pauseMs = 60; // Per lane: the load is bounded, the kills are the point.

interface Asked {
  readonly checkoutNo: string;
  readonly units: number;
  readonly couponId?: string;
  /** What the customer was told in the end; undefined for one who went away. */
  told?: Answer;
}

/** This run's own one stays alive: the site starts one to kill. */
const hasMariadb = inject('mariadbUrl') !== '';

describe.skipIf(!hasMariadb)(`checkouts under kill -9 (seed ${seed}, ${killMs} ms)`, () => {
  let site: KillSite;
  const asked: Asked[] = [];
  const kills: Record<string, number> = {};
  let endMs = 0;

  beforeAll(async () => {
    site = await startKillSite(3);
    const [base] = site.shops as [string];
    for (const [skuId, units] of Object.entries(supply)) {
      await must(`${base}/api/skus`, { skuId, name: skuId, priceMinor: price, stock: 0 });
      await must(`${site.depot}/api/depot/${skuId}/supplies`, { supplyNo: 's', units });
    }
    for (let i = 0; i < customers; i++) {
      const deposit = { txnNo: 'd', amountMinor: depositMinor };
      await must(`${base}/api/accounts/u${i}/deposits`, deposit);
    }
    const coupon = { couponId: 'c', total: couponTotal, perUser: couponTotal };
    await must(`${base}/api/coupons`, coupon);
  }, 300_000); // Two servers and four processes, one after another.
  afterAll(() => site?.stop());

  async function must(url: string, body: object): Promise<void> {
    expect([url, (await call(url, 'POST', body)).status]).toEqual([url, 201]);
  }

  interface Customer {
    readonly userId: string;
    readonly skuId: string;
    /** Asks until there is an answer; otherwise goes away after the first failure. */
    readonly insists: boolean;
  }

  async function checkOut(chance: Chance, checkout: Asked, customer: Customer): Promise<void> {
    const { insists, ...who } = customer;
    const wish = { ...checkout };
    asked.push(checkout);
    const ask = async (): Promise<boolean> => {
      const base = site.shops[chance.between(0, site.shops.length - 1)];
      const answer = await call(`${base}/api/checkouts`, 'POST', { ...wish, ...who });
      const { code } = answer.body;
      if (code === 'OPERATION_PARKED') return true;
      if (answer.status >= 500 || code === 'REQUEST_IN_PROGRESS') return false;
      checkout.told = answer;
      return true;
    };
    if (insists) await until(ask, killMs + retryBoundMs);
    else await ask().catch(() => undefined);
  }

  /** One lane of customers: most insist on an answer, some go away. */
  async function buy(lane: number): Promise<void> {
    const chance = createChance(seed, `lane ${lane}`);
    for (let i = 0; Date.now() < endMs; i++) {
      const checkout: Asked = {
        checkoutNo: `l${lane}-${i}`,
        units: chance.between(1, 3),
        ...(chance.between(1, 4) === 1 ? { couponId: 'c' } : {}),
      };
      const userId = chance.between(1, 12) === 1 ? 'poor' : `u${chance.between(0, customers - 1)}`;
      const skuId = chance.between(1, 6) === 1 ? 'rare' : 'tea';
      await checkOut(chance, checkout, { userId, skuId, insists: chance.between(1, 5) > 1 });
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }

  const answered = (): number => asked.filter(({ told }) => told !== undefined).length;

  /** Kills one after another, each after some answers or a random while, and starts it again. */
  async function kill(lane: number, victims: readonly Victim[]): Promise<void> {
    const chance = createChance(seed, `killer ${lane}`);
    while (Date.now() < endMs) {
      const victim = victims[chance.between(0, victims.length - 1)] as Victim;
      const enough = answered() + chance.between(5, 40);
      const peaceEndMs = Date.now() + chance.between(200, peaceMaxMs);
      await until(async () => answered() >= enough || Date.now() > peaceEndMs);
      await victim.kill();
      kills[victim.name] = (kills[victim.name] ?? 0) + 1;
      await new Promise((resolve) => setTimeout(resolve, chance.between(0, 300)));
      await victim.start();
    }
  }

  it(
    'conserves money, units and coupons, and ends every gid the same on both sides',
    async () => {
      // However short the storm: one that is confirmed and one that is cancelled.
      for (const userId of ['u0', 'poor']) {
        const checkout = { checkoutNo: `first-${userId}`, units: 1 };
        const customer = { userId, skuId: 'tea', insists: true };
        await checkOut(createChance(seed, userId), checkout, customer);
      }
      endMs = Date.now() + killMs;
      const coordinators = site.victims.filter(({ name }) => name.startsWith('shop'));
      const others = site.victims.filter(({ name }) => !name.startsWith('shop'));
      const storm = Array.from({ length: lanes }, (_, lane) => buy(lane));
      await Promise.all([kill(1, coordinators), kill(2, others)]);
      const healedMs = Date.now();
      const books = openBooks(site.databaseUrls);
      try {
        // Nobody is asked for: whoever's customer went away is finished by recovery alone.
        await until(async () => (await books.open()) === 0, retryBoundMs);
        const endedMs = Date.now() - healedMs;
        await Promise.all(storm);
        await until(async () => (await books.open()) === 0, retryBoundMs);
        check(await books.read(), endedMs);
      } finally {
        await books.close();
      }
      for (const base of [...site.shops, site.depot]) {
        expect((await call(`${base}/api/audit`)).body.violations).toEqual([]);
      }
    },
    killMs + 2 * retryBoundMs,
  );

  function check({ endings, branches, money, units, coupons }: Books, endedMs: number): void {
    const withState = (state: string): readonly Ending[] =>
      endings.filter((ending) => ending.state === state);
    const [done, refused] = [withState('done'), withState('refused')];
    const most = (numbers: readonly number[]): number => Math.max(0, ...numbers);
    const figures = {
      seed,
      killMs,
      kills,
      asked: asked.length,
      confirmed: done.length,
      cancelled: refused.length,
      released: withState('released').length,
      parked: withState('parked').length,
      wentAway: asked.filter(({ told }) => told === undefined).length,
      takenOver: endings.filter(({ attempts }) => attempts > 1).length,
      attemptsMost: most(endings.map(({ attempts }) => attempts)),
      endedMs,
    };
    process.stderr.write(`kills: ${JSON.stringify(figures)}\n`);
    expect(withState('parked').map(({ checkoutNo, error }) => [checkoutNo, error])).toEqual([]);
    expect(figures.attemptsMost).toBeLessThan(attemptsMax);
    expect(done.length + refused.length + figures.released).toBe(endings.length);
    const wanted = new Map<string, readonly string[]>();
    for (const { gid } of done) {
      wanted.set(
        String(gid),
        ['balance', 'coupon', 'stock'].map((name) => `${name} CONFIRMED`),
      );
    }
    const cancelled = refused.map(({ gid }) => String(gid));
    for (const gid of cancelled) {
      // SUSPENDED: cancelled before, or instead of, its try.
      const same = (branches.get(gid) ?? []).map((text) => text.replace('SUSPENDED', 'CANCELLED'));
      expect([gid, same]).toEqual([
        gid,
        ['balance', 'coupon', 'stock'].map((name) => `${name} CANCELLED`),
      ]);
      wanted.set(gid, branches.get(gid) as readonly string[]);
    }
    expect(new Map([...branches].sort())).toEqual(new Map([...wanted].sort()));
    const sold = done.map(
      ({ checkoutNo }) => asked.find((one) => one.checkoutNo === checkoutNo) as Asked,
    );
    const soldUnits = sold.reduce((sum, one) => sum + one.units, 0);
    const supplied = supply.tea + supply.rare;
    expect(money).toEqual({
      balances: customers * depositMinor - soldUnits * price,
      held: 0,
      paid: soldUnits * price,
    });
    expect(units).toEqual({ left: supplied - soldUnits, held: 0, sold: soldUnits });
    const used = sold.filter(({ couponId }) => couponId !== undefined).length;
    expect(coupons).toEqual({ redeemed: used, rows: used });
    for (const { checkoutNo, told } of asked) {
      if (told === undefined) continue;
      const ending = endings.find((one) => one.checkoutNo === checkoutNo);
      const state = told.status === 201 ? 'done' : 'refused';
      const code = told.status === 201 ? 'CONFIRMED' : 'TCC_CANCELLED';
      expect([checkoutNo, told.body.status ?? '', told.body.code ?? '', ending?.state]).toEqual([
        checkoutNo,
        told.status === 201 ? code : (told.body.status ?? ''),
        told.status === 201 ? '' : code,
        state,
      ]);
    }
    expect(done.length).toBeGreaterThan(0);
    expect(refused.length).toBeGreaterThan(0);
  }
});
