/** Three processes behind one port, on every database, with locks in Redis: killed one after another. */

import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { until } from './support/channel.ts';
import {
  type Answer,
  call,
  flood,
  makeOrder,
  makeSku,
  onEachDatabase,
  type ShopProcess,
  spawnThree,
} from './support/shop.ts';

/** One request on a connection of its own. */
function ask(url: string): Promise<'answered' | 'broken' | 'silent'> {
  return new Promise((resolve) => {
    const request = get(url, { agent: new Agent({ keepAlive: false }), timeout: 10_000 });
    request.on('response', (response) => {
      response.resume();
      response.on('end', () => resolve('answered')).on('error', () => resolve('broken'));
    });
    request.on('timeout', () => {
      resolve('silent');
      request.destroy();
    });
    request.on('error', () => setTimeout(resolve, 10, 'broken')); // Nobody may listen for a moment.
  });
}

/** A lock of a killed process ends with its lease of 30 s, and three are killed: one may wait for all. */
const leasesMs = 3 * 30_000 + 30_000;

onEachDatabase('three processes behind one port', (serverUrl) => {
  let shop: ShopProcess;
  const dataDir = mkdtempSync(join(tmpdir(), 'turngate-processes-'));

  beforeAll(async () => {
    shop = await spawnThree(serverUrl, dataDir);
  });
  afterAll(async () => {
    await shop?.killGroup();
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 50, retryDelay: 100 });
  });

  const told = (what: 'listens' | 'ended'): number[] =>
    [...shop.said().matchAll(new RegExp(`process (\\d+) ${what}`, 'g'))].map(([, pid]) =>
      Number(pid),
    );
  const living = (): number[] => {
    const ended = new Set(told('ended'));
    return told('listens').filter((pid) => !ended.has(pid));
  };

  /** Kills it and waits for the one that comes in its place. */
  async function kill(pid: number): Promise<void> {
    const born = told('listens').length;
    process.kill(pid, 'SIGKILL');
    await until(async () => told('listens').length > born && !living().includes(pid));
  }

  /** Asks again until there is an answer: a killed process may have been at it. */
  async function insist(path: string, body?: unknown, key?: string): Promise<Answer> {
    const headers: Record<string, string> = key === undefined ? {} : { 'idempotency-key': key };
    let answer: Answer | undefined;
    const isFinal = async (): Promise<boolean> => {
      answer = undefined;
      answer = await call(`${shop.base}${path}`, 'POST', body, headers);
      return answer.status < 500 && answer.body.code !== 'REQUEST_IN_PROGRESS';
    };
    await until(isFinal, leasesMs).catch((cause: unknown) => {
      const last = `${path}: the last answer was ${answer?.status} ${JSON.stringify(answer?.body)}`;
      throw new Error(last, { cause });
    });
    return answer as Answer;
  }

  it('every connection is answered or ends, whichever process is killed', async () => {
    let killed = 0;
    const ends = { answered: 0, broken: 0, silent: 0 };
    const asking = flood(24, 24, async () => {
      while (killed < 6) ends[await ask(`${shop.base}/healthz`)]++;
    });
    const kills = async (): Promise<void> => {
      for (; killed < 6; killed++) await kill(living().at(-1) as number);
    };
    await Promise.all([asking, kills()]);
    expect(ends.answered).toBeGreaterThan(0);
    expect(ends.silent).toBe(0);
  });

  it('stays clean through kill -9 of every process, and each comes back', async () => {
    const skuId = await makeSku(shop.base, 40);
    const saleId = await makeSku(shop.base, 20);
    const activity = { activityId: 'sale', skuId: saleId, units: 20, perUser: 1 };
    expect((await insist('/api/activities', activity)).status).toBe(201);
    let done = 0;
    const storm = flood(200, 24, async (i) => {
      const user = `u${i % 50}`;
      const order = { userId: user, skuId, quantity: 1 };
      const made = await insist('/api/orders', order, `key-${i % 100}`);
      const bought = await insist('/api/activities/sale/purchase', { userId: user });
      const paid = await insist(`/api/orders/${made.body.orderNo}/pay`);
      done++;
      return { orderNo: made.body.orderNo as string, bought, paid };
    });
    const kills = async (): Promise<void> => {
      for (const pid of living()) {
        const before = done;
        await until(async () => done >= before + 20 || done === 200, leasesMs);
        await kill(pid);
      }
    };
    const [answers] = await Promise.all([storm, kills()]);
    expect(new Set(answers.map(({ orderNo }) => orderNo)).size).toBe(100);
    const paid = new Set(
      answers.flatMap(({ orderNo, paid: { status } }) => (status === 200 ? [orderNo] : [])),
    );
    expect(paid.size).toBe(40);
    const sold = new Set(answers.flatMap(({ bought }) => bought.body.orderNo ?? []));
    expect(sold.size).toBe(20);
    expect((await call(`${shop.base}/api/skus/${skuId}`)).body.stock).toBe(0);
    expect((await call(`${shop.base}/api/audit`)).body.violations).toEqual([]);
    const orderNo = await makeOrder(shop.base, await makeSku(shop.base, 1));
    expect((await call(`${shop.base}/api/orders/${orderNo}/pay`, 'POST')).status).toBe(200);
    expect(await shop.interrupt()).toBe(0);
    expect(shop.said()).toContain('stopped');
  }, 300_000);
});
