/**
 * The flash sale over three processes: every unit is sold, one per customer, whatever is asked again.
 *
 * TURNGATE_FLASH_SALE_BUYERS=5000 runs it at full size, 1,000 units; TURNGATE_SEED replays an order.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createChance } from '../dist/lab/chance.js';
import {
  type Answer,
  call,
  flood,
  makeSku,
  onEachDatabase,
  type ShopProcess,
  spawnThree,
} from './support/shop.ts';

const buyers = Number(process.env['TURNGATE_FLASH_SALE_BUYERS'] ?? 500);
const units = buyers / 5;
const repeats = buyers / 5;
const inFlight = 96;
const seed = Number(process.env['TURNGATE_SEED'] ?? 1);

onEachDatabase('a flash sale over three processes', (serverUrl) => {
  let shop: ShopProcess;
  const dataDir = mkdtempSync(join(tmpdir(), 'turngate-flash-'));

  beforeAll(async () => {
    shop = await spawnThree(serverUrl, dataDir);
  }, 300_000);
  afterAll(async () => {
    await shop?.killGroup();
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 50, retryDelay: 100 });
  });

  it('sells exactly what there is, one per customer, and no caller hears of a deadlock', async () => {
    const skuId = await makeSku(shop.base, units + 7);
    const activity = { activityId: 'flash', skuId, units, perUser: 1 };
    expect((await call(`${shop.base}/api/activities`, 'POST', activity)).status).toBe(201);
    const chance = createChance(seed, 'buyers');
    const queue = shuffled(chance, [
      ...Array.from({ length: buyers }, (_, i) => `buyer-${i}`),
      ...Array.from({ length: repeats }, () => `buyer-${chance.between(0, buyers - 1)}`),
    ]);
    const startMs = performance.now();
    const answers = await flood(queue.length, inFlight, async (i) => {
      const userId = queue[i] as string;
      const body = { userId };
      // Every tenth presses twice at once.
      const presses = i % 10 === 0 ? 2 : 1;
      const both = Array.from({ length: presses }, () =>
        call(`${shop.base}/api/activities/flash/purchase`, 'POST', body),
      );
      return (await Promise.all(both)).map((answer) => ({ userId, answer }));
    });
    const ms = performance.now() - startMs;
    const all = answers.flat();
    console.info(
      `seed ${seed}: ${all.length} purchases by ${buyers} buyers of ${units} units in ${Math.round(ms)} ms`,
    );

    expect(tally(all.map(({ answer }) => answer))).toEqual({
      '201': expect.any(Number),
      SOLD_OUT: expect.any(Number),
    });
    const orders = new Map<string, Set<string>>();
    for (const { userId, answer } of all) {
      if (answer.status !== 201) continue;
      orders.set(userId, (orders.get(userId) ?? new Set()).add(answer.body.orderNo));
    }
    expect(orders.size).toBe(units);
    expect([...orders.values()].every((own) => own.size === 1)).toBe(true);
    expect(new Set([...orders.values()].flatMap((own) => [...own])).size).toBe(units);
    expect((await call(`${shop.base}/api/skus/${skuId}`)).body.stock).toBe(7);
    const audit = (await call(`${shop.base}/api/audit`)).body;
    expect(audit.violations).toEqual([]);
    expect(audit.orders.byStatus).toEqual({ PENDING_PAY: units });
  }, 900_000);
});

/** How often each code, or each status without one. */
function tally(answers: readonly Answer[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status, body } of answers) {
    const code = String(body.code ?? status);
    counts[code] = (counts[code] ?? 0) + 1;
  }
  return counts;
}

function shuffled<T>(chance: ReturnType<typeof createChance>, items: readonly T[]): T[] {
  const mixed = [...items];
  for (let i = mixed.length - 1; i > 0; i--) {
    const j = chance.between(0, i);
    [mixed[i], mixed[j]] = [mixed[j] as T, mixed[i] as T];
  }
  return mixed;
}
