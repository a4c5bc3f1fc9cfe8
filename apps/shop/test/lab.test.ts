import { execFile, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { countLosses, type OrderFact } from '../src/lab/audit.ts';
import { noLosses } from '../src/lab/losses.ts';
import type { CellResult } from '../src/lab/matrix.ts';
import { parseOptions, UsageError } from '../src/lab/options.ts';
import { htmlReport } from '../src/lab/report/html.ts';
import { mismatchOf } from '../src/lab/verdict.ts';
import { freshDatabase } from './support/shop.ts';

const entry = fileURLToPath(new URL('../dist/lab/main.js', import.meta.url));
const postgresUrl = inject('postgresUrl');

describe('audit', () => {
  const order: OrderFact = {
    orderNo: 'o',
    skuId: 's',
    status: 'paid',
    cancelled: false,
    charges: 1,
  };
  const lossesOf = (
    changed: Partial<OrderFact>,
    current = 9,
    told: 'already' | 'refused' | '' = '',
  ) =>
    countLosses(
      {
        orders: [{ ...order, ...changed }],
        skus: [{ id: 's', initial: 10, current }],
      },
      told === '' ? [] : [{ orderNo: 'o', answer: { kind: told, why: '' } }],
    );

  it('finds nothing where an order was charged once and took one unit', () => {
    expect(lossesOf({}, 9, 'already')).toEqual(noLosses);
  });

  it('counts each kind of loss', () => {
    expect(lossesOf({ charges: 3 }, 7)).toEqual({ ...noLosses, extraCharges: 2, stockDrift: 2 });
    expect(lossesOf({ cancelled: true })).toEqual({ ...noLosses, chargedAfterCancel: 1 });
    expect(lossesOf({ charges: 0 })).toEqual({ ...noLosses, uncharged: 1 });
    expect(lossesOf({ status: 'created' }, 10)).toEqual({
      ...noLosses,
      chargedUnsold: 1,
      ordersLost: 1,
    });
    expect(lossesOf({ status: 'created', charges: 0 }, 10, 'already')).toEqual({
      ...noLosses,
      ordersLost: 1,
      falseSuccess: 1,
    });
  });

  it('does not take "sold out" for an answer while there is stock', () => {
    const unpaid = { status: 'created', charges: 0 };
    expect(lossesOf(unpaid, 10, 'refused').ordersLost).toBe(1);
    const orders = [order, { ...order, ...unpaid, orderNo: 'late' }];
    const told = [{ orderNo: 'late', answer: { kind: 'refused', why: 'sold out' } }] as const;
    const skus = [{ id: 's', initial: 1, current: 0 }];
    expect(countLosses({ orders, skus }, told)).toEqual(noLosses);
  });
});

describe('verdict', () => {
  const reportWith = (losses: Partial<typeof noLosses>) => ({
    orders: 1,
    paid: 1,
    charges: 1,
    answers: { paid: 1, already: 0, refused: 0, failed: 0 },
    losses: { ...noLosses, ...losses },
  });

  it('rejects a loss where there should be none, and none where there should be one', () => {
    const clean = { verdict: 'clean', why: 'w' } as const;
    const loses = { verdict: 'loses', kinds: ['extraCharges'], why: 'w' } as const;
    expect(mismatchOf(reportWith({}), clean)).toBeUndefined();
    expect(mismatchOf(reportWith({ ordersLost: 2 }), clean)).toContain('2 orders lost');
    expect(mismatchOf(reportWith({ extraCharges: 1 }), loses)).toBeUndefined();
    expect(mismatchOf(reportWith({ ordersLost: 1 }), loses)).toContain('double charges');
    expect(mismatchOf(reportWith({}), loses)).toContain('no loss');
  });
});

describe('command line', () => {
  it.each([
    [['--jsn', 'x'], '--jsn'],
    [['--only', 'nothing'], '"nothing"'],
    [['--storm', 'flash-sale,drizzle'], '"drizzle"'],
    [['--seed', '-1'], '--seed'],
    [['--seed', '1.5'], '--seed'],
    [['--html', ''], '--html'],
    [['extra'], 'extra'],
  ])('refuses %j', (args, named) => {
    expect(() => parseOptions(args)).toThrow(UsageError);
    expect(() => parseOptions(args)).toThrow(named);
  });

  it('keeps the order of the report whatever the order of the names', () => {
    const options = parseOptions(['--only', 'turngate,no-guard', '--quick']);
    expect(options).toMatchObject({ implementations: ['no-guard', 'turngate'], quick: true });
  });
});

describe('html', () => {
  it('escapes what it shows', () => {
    const cell: CellResult = {
      implementation: 'turngate',
      storm: 'flash-sale',
      theory: { verdict: 'clean', why: '<i>why</i>' },
      durationMs: 1,
      report: undefined,
      mismatch: `the storm broke: <script>alert("1")</script> & 'more'`,
    };
    const html = htmlReport({
      plan: {
        implementations: ['turngate'],
        storms: ['flash-sale'],
        contests: [],
        quick: true,
        seed: 1,
      },
      cells: [cell],
      contests: [],
      startedAt: new Date(0),
      durationMs: 1,
      nodeVersion: '<b>20</b>',
      postgresVersion: '18',
    });
    expect(html).toContain(
      '&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; &#39;more&#39;',
    );
    expect(html).toContain('&lt;i&gt;why&lt;/i&gt;');
    expect(html).toContain('&lt;b&gt;20&lt;/b&gt;');
    expect(html).not.toContain('<script');
    expect(html).not.toMatch(/(?:src|href)=|url\(|@import/);
  });
});

// Seconds on a quiet machine; other test files may load both cores.
describe.skipIf(postgresUrl === '')('npm run lab', { timeout: 90_000 }, () => {
  let folder: string;
  // Of its own: other test files run labs too, and this one looks for what is left behind.
  let databaseUrl: string;
  beforeAll(async () => {
    databaseUrl = await freshDatabase(postgresUrl);
    folder = await mkdtemp(join(tmpdir(), 'turngate-lab-test-'));
  });
  afterAll(async () => {
    await rm(folder, { recursive: true, force: true });
  });

  it('prints the table, writes both reports and leaves no schema behind', async () => {
    const [jsonFile, htmlFile] = [join(folder, 'a', 'lab.json'), join(folder, 'b', 'lab.html')];
    const args = ['--quick', '--only', 'no-guard,deleted-in-rollback,turngate'];
    const storms = ['--storm', 'double-click,failing-first'];
    const files = ['--json', jsonFile, '--html', htmlFile];
    const { code, stdout, stderr } = await runLab(databaseUrl, [...args, ...storms, ...files]);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stdout).toMatch(/^no guard +C4 +C4$/m);
    expect(stdout).toMatch(/^record deleted in the rollback +ok +L4$/m);
    expect(stdout).toMatch(/^turngate +ok +ok$/m);
    expect(stdout).toContain('6 of 6 cells are as the theory says');
    expect(stderr).toMatch(/lab: +\d+\.\d s {2}6\/6 {2}turngate × failing-first: no loss/);

    const report = JSON.parse(await readFile(jsonFile, 'utf8'));
    expect(report).toMatchObject({ formatVersion: 1, asTheory: true, seed: 1, quick: true });
    expect(report.cells).toHaveLength(6);
    expect(report.cells[1]).toMatchObject({
      implementation: 'no-guard',
      storm: 'failing-first',
      mismatch: null,
      audit: { orders: 4, paid: 4, charges: 8, losses: { extraCharges: 4, ordersLost: 0 } },
    });
    expect(await readFile(htmlFile, 'utf8')).toContain('All 6 cells are as the theory says');
    expect(await labSchemas(databaseUrl)).toEqual([]);
  });

  it('exits with 2 and a message for an option it does not know', async () => {
    const { code, stderr } = await runLab(databaseUrl, ['--nope']);
    expect(code).toBe(2);
    expect(stderr).toContain("Unknown option '--nope'");
  });

  it('exits with 130 on Ctrl-C and cleans up', async () => {
    const child = spawn(process.execPath, [entry, '--storm', 'retry-storm'], {
      env: { ...process.env, DATABASE_URL: databaseUrl },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const exited = new Promise((resolve) => child.once('exit', resolve));
    let interrupted = false;
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      if (interrupted || !text.includes('no-guard × retry-storm')) return;
      interrupted = true;
      child.kill('SIGINT');
    });
    expect(await exited).toBe(130);
    expect(await labSchemas(databaseUrl)).toEqual([]);
  });
});

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function runLab(databaseUrl: string, args: readonly string[]): Promise<Ended> {
  const env = { ...process.env, DATABASE_URL: databaseUrl };
  return await new Promise((resolve) => {
    execFile(process.execPath, [entry, ...args], { env }, (error, stdout, stderr) => {
      resolve({
        code: typeof error?.code === 'number' ? error.code : error ? -1 : 0,
        stdout,
        stderr,
      });
    });
  });
}

async function labSchemas(databaseUrl: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const { rows } = await client.query(
      "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'turngate\\_lab\\_%'",
    );
    return rows;
  } finally {
    await client.end();
  }
}
