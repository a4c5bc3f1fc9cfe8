/** Reconciliation on a real database: every injected difference in its class, none on clean data. */
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { SqlDatabase } from '../../src/contract/sql-session.ts';
import type { FindingCode } from '../../src/reconcile/finding.ts';
import {
  compareLines,
  type Line,
  type LinePlace,
  type LineSource,
  parseAmount,
  parseBill,
  reconcile,
  repairBreaks,
  reportCsv,
  reportHtml,
  type Side,
} from '../../src/reconcile/index.ts';
import { postgresDatabase } from '../../src/stores/postgres/index.ts';
import { createDatabase, createPool, type TestDatabase } from '../support/postgres.ts';

const fromMs = Date.UTC(2026, 10, 28);
const dayMs = 86_400_000;
const noonMs = fromMs + dayMs / 2;

type Sides = Record<Side, Line[]>;

function line(key: string, parts: Partial<Line> = {}): Line {
  return {
    kind: 'PAY',
    key,
    ref: key,
    amountMinor: 1_250n,
    currency: 'CNY',
    status: 'SUCCESS',
    atMs: noonMs,
    ...parts,
  };
}

function cleanDay(keys: number): Sides {
  const names = Array.from({ length: keys }, (_, i) => `P${String(i).padStart(7, '0')}`);
  return {
    order: names.map((key) => line(key, { status: 'PAID' })),
    flow: names.map((key) => line(key, { alt: `T${key}` })),
    bill: names.map((key) => line(key, { alt: `T${key}` })),
  };
}

function sourceOf(sides: Sides, failAfter = Number.POSITIVE_INFINITY) {
  let sent = 0;
  return (side: Side, after: LinePlace | undefined): LineSource => {
    const lines = sides[side]
      .toSorted(compareLines)
      .filter((one) => after === undefined || compareLines(one, after) > 0);
    return (async function* () {
      for (let i = 0; i < lines.length; i += 997) {
        sent += 997;
        if (sent > failAfter) throw new Error('the source broke');
        yield lines.slice(i, i + 997);
      }
    })();
  };
}

function change(lines: Line[], i: number, parts: Partial<Line>): void {
  lines[i] = { ...(lines[i] as Line), ...parts };
}

/** What each class looks like; the number is which clean key it spoils. */
const injections: Partial<Record<FindingCode, (sides: Sides, i: number) => void>> = {
  MISSING_LOCAL: (sides, i) => void [sides.flow.splice(i, 1), sides.order.splice(i, 1)],
  MISSING_CHANNEL: (sides, i) => void sides.bill.splice(i, 1),
  PENDING_LOCAL_PAID: ({ flow, order }, i) => {
    flow[i] = { ...(flow[i] as Line), status: 'PENDING' };
    order[i] = { ...(order[i] as Line), status: 'UNPAID' };
  },
  CLOSED_LOCAL_PAID: ({ order }, i) => change(order, i, { status: 'CLOSED' }),
  PAID_LOCAL_FAILED: ({ bill }, i) => change(bill, i, { status: 'FAILED' }),
  AMOUNT_MISMATCH: ({ bill }, i) => change(bill, i, { amountMinor: 1_251n }),
  CURRENCY_MISMATCH: ({ bill }, i) => change(bill, i, { currency: 'USD' }),
  DUP_CHANNEL: ({ bill }, i) => void bill.push({ ...(bill[i] as Line), ref: 'again' }),
  DUP_LOCAL: ({ flow }, i) => void flow.push({ ...(flow[i] as Line), ref: 'again' }),
  MISSING_ORDER: ({ order }, i) => void order.splice(i, 1),
  MISSING_FLOW: ({ flow, bill }, i) => void [flow.splice(i, 1), bill.splice(i, 1)],
  REFUND_MISSING_CHANNEL: ({ flow }, i) => void flow.push(line(`R${i}`, { kind: 'REFUND' })),
  REFUND_MISSING_LOCAL: ({ bill }, i) => void bill.push(line(`R${i}`, { kind: 'REFUND' })),
  OVER_REFUND: ({ flow, bill }, i) => {
    const quota = { spentMinor: 1_300n, capturedMinor: 1_250n };
    flow.push(line(`O${i}`, { kind: 'REFUND', quota }));
    bill.push(line(`O${i}`, { kind: 'REFUND' }));
  },
  FEE_MISMATCH: ({ flow, bill }, i) => {
    flow.push(line(`F${i}`, { kind: 'FEE', amountMinor: 100n }));
    bill.push(line(`F${i}`, { kind: 'FEE', amountMinor: 120n }));
  },
  UNKNOWN_KIND: ({ bill }, i) => void bill.push(line(`X${i}`, { kind: 'VOUCHER' })),
  STALE_PENDING: ({ flow }, i) =>
    void flow.push(line(`S${i}`, { status: 'PENDING', atMs: fromMs - 2 * dayMs })),
  POOLED_CUTOFF: ({ flow, bill, order }, i) => {
    flow[i] = { ...(flow[i] as Line), atMs: fromMs + dayMs - 1_000 };
    bill.splice(i, 1);
    order.splice(i, 1);
  },
};

describe.skipIf(inject('postgresUrl') === '')('reconciling a day', () => {
  let target: TestDatabase;
  let pool: pg.Pool;
  let database: SqlDatabase;
  let serial = 0;

  beforeAll(async () => {
    target = await createDatabase();
    pool = createPool(target.url, { max: 12 });
    database = postgresDatabase(pool) as SqlDatabase;
  });
  afterAll(async () => {
    await pool.end();
    await target.drop();
  });

  const run = (sides: Sides, parts: object = {}) =>
    reconcile({
      database,
      channel: `channel-${++serial}`,
      date: '2026-11-28',
      fromMs,
      toMs: fromMs + dayMs,
      open: sourceOf(sides),
      ...parts,
    });

  it('finds nothing on clean data', async () => {
    const result = await run(cleanDay(5_000));
    expect(result).toMatchObject({
      kind: 'done',
      report: { counts: { MATCHED: 5_000 }, breaks: [] },
    });
  });

  it.each(Object.entries(injections))(
    'finds an injected %s, and nothing else',
    async (code, spoil) => {
      const sides = cleanDay(3_000);
      spoil(sides, 1_234);
      const result = await run(sides);
      if (result.kind !== 'done') throw new Error(result.kind);
      const { MATCHED: _, ...others } = result.report.counts;
      expect(others).toEqual({ [code]: 1 });
      expect(result.report.breaks.map((one) => one.code)).toEqual(
        code === 'POOLED_CUTOFF' ? [] : [code],
      );
    },
  );

  it('finds all of them together in a shuffled day', async () => {
    const sides = cleanDay(3_000);
    Object.values(injections).forEach((spoil, i) => {
      spoil(sides, 2_900 - i * 100);
    });
    const result = await run(sides);
    if (result.kind !== 'done') throw new Error(result.kind);
    const codes = result.report.breaks.map((one) => one.code);
    expect(codes.sort()).toEqual(
      Object.keys(injections)
        .filter((code) => code !== 'POOLED_CUTOFF')
        .sort(),
    );
    expect(reportCsv(result.report).split('\r\n')).toHaveLength(codes.length + 2);
    expect(reportHtml(result.report)).toContain('MISSING_CHANNEL');
  });

  it('pools a line near midnight and matches it the next day; after the pool days it is a break', async () => {
    const channel = `channel-${++serial}`;
    const late = line('P-late', { atMs: fromMs + dayMs - 1_000 });
    const lost = line('P-lost', { atMs: fromMs + dayMs - 500 });
    const order = [late, lost].map((one) => ({ ...one, status: 'PAID' as const }));
    const day = async (n: number, sides: Partial<Sides>) => {
      const start = fromMs + n * dayMs;
      const result = await reconcile({
        database,
        channel,
        date: new Date(start).toISOString().slice(0, 10),
        fromMs: start,
        toMs: start + dayMs,
        open: sourceOf({ order: [], flow: [], bill: [], ...sides }),
      });
      if (result.kind !== 'done') throw new Error(result.kind);
      return result.report.counts;
    };
    expect(await day(0, { order, flow: [late, lost] })).toEqual({ POOLED_CUTOFF: 2 });
    const bill = [line('P-late', { atMs: fromMs + dayMs + 1_000 })];
    expect(await day(1, { order, flow: [late, lost], bill })).toEqual({
      MATCHED: 1,
      POOLED_CUTOFF: 1,
    });
    expect(await day(2, { order })).toMatchObject({ POOLED_CUTOFF: 1 });
    expect(await day(3, { order })).toMatchObject({ MISSING_CHANNEL: 1 });
  });

  it('uses a line once: what yesterday matched cannot match again today', async () => {
    const channel = `channel-${++serial}`;
    const late = line('P1', { atMs: fromMs + dayMs - 1_000 });
    const order = [{ ...late, status: 'PAID' as const }];
    const day = (n: number) =>
      reconcile({
        database,
        channel,
        date: new Date(fromMs + n * dayMs).toISOString().slice(0, 10),
        fromMs: fromMs + n * dayMs,
        toMs: fromMs + (n + 1) * dayMs,
        open: sourceOf({ order, flow: [late], bill: [late] }),
      });
    expect(await day(0)).toMatchObject({ report: { counts: { MATCHED: 1 } } });
    expect(await day(1)).toMatchObject({ report: { counts: { DUP_CHANNEL: 1 } } });
  });

  it('runs once per channel and date, also when ten start together', async () => {
    const channel = `channel-${++serial}`;
    const sides = cleanDay(2_000);
    const results = await Promise.all(Array.from({ length: 10 }, () => run(sides, { channel })));
    const fresh = results.filter((one) => one.kind === 'done' && !one.repeated);
    expect(fresh).toHaveLength(1);
    const repeat = await run(sides, { channel });
    expect(repeat).toMatchObject({
      kind: 'done',
      repeated: true,
      report: { counts: { MATCHED: 2_000 } },
    });
  });

  it('resumes after a crash at its checkpoint without counting anything twice', async () => {
    const channel = `channel-${++serial}`;
    const sides = cleanDay(120_000);
    sides.bill.splice(10, 1);
    await expect(run(sides, { channel, open: sourceOf(sides, 250_000) })).rejects.toThrow('broke');
    const [row] = (
      await database.query('SELECT after_key FROM turngate_recon_run WHERE channel = $1', [channel])
    ).rows;
    expect(row?.['after_key']).toBeTruthy();
    const result = await run(sides, { channel });
    expect(result).toMatchObject({
      report: { counts: { MATCHED: 119_999, MISSING_CHANNEL: 1 } },
    });
  });

  it('updates breaks when it runs again, and resolves those the data has resolved', async () => {
    const channel = `channel-${++serial}`;
    const sides = cleanDay(100);
    const [gone] = sides.bill.splice(5, 1);
    await run(sides, { channel });
    sides.bill.push(gone as Line);
    const result = await run(sides, { channel, again: true });
    expect(result).toMatchObject({ report: { counts: { MATCHED: 100 }, breaks: [] } });
    const { rows } = await database.query(
      'SELECT state FROM turngate_recon_break WHERE channel = $1',
      [channel],
    );
    expect(rows).toEqual([{ state: 'RESOLVED_BY_DATA' }]);
  });

  it('refuses a side that is out of order instead of finding false breaks', async () => {
    const sides = cleanDay(10);
    const open = (side: Side): LineSource =>
      (async function* () {
        yield side === 'bill' ? sides.bill.toReversed() : sides[side];
      })();
    await expect(run(sides, { open })).rejects.toMatchObject({ code: 'OPTION_INVALID' });
  });

  it('repairs nothing unless told so, within its limits, each under a key that stays', async () => {
    const channel = `channel-${++serial}`;
    const sides = cleanDay(50);
    sides.bill.splice(0, 10);
    await run(sides, { channel });
    const keys: string[] = [];
    const actions = {
      'query-channel': async (_: unknown, key: string) => {
        keys.push(key);
        return 'fixed' as const;
      },
    };
    const options = { database, channel, date: '2026-11-28', actions };
    const planned = await repairBreaks(options);
    expect([planned.length, keys.length]).toEqual([10, 0]);
    const done = await repairBreaks({ ...options, dryRun: false, countMax: 3 });
    expect(done.filter(({ result }) => result === 'fixed')).toHaveLength(3);
    expect(done.filter(({ result }) => result === 'over-limit')).toHaveLength(7);
    await repairBreaks({ ...options, dryRun: false, countMax: 3 });
    expect(new Set(keys).size).toBe(3);
  });
});

describe('amounts and bills', () => {
  it.each([
    ['12.50', 'CNY', 1_250n],
    ['-0.01', 'USD', -1n],
    ['100', 'JPY', 100n],
    ['1.234', 'BHD', 1_234n],
    ['1.500', 'CNY', 150n],
  ])('reads %s %s', (text, currency, minor) => {
    expect(parseAmount(text, currency)).toBe(minor);
  });

  it.each([
    ['1.5', 'JPY'],
    ['1.005', 'CNY'],
    ['1e3', 'CNY'],
    ['', 'CNY'],
    ['١', 'CNY'],
    [1.5, 'CNY'],
  ])('refuses %o %s', (text, currency) => {
    expect(() => parseAmount(text, currency)).toThrow(/amount must be/);
  });

  const format = {
    currency: 'CNY',
    line: ([kind, key, alt, amount, currency]: readonly string[]) => ({
      kind: kind as string,
      key: key as string,
      ref: `${kind}/${key}/${alt}`,
      alt: alt as string,
      amount: amount as string,
      currency: currency as string,
      status: 'SUCCESS' as const,
      atMs: noonMs,
    }),
    trailer: ([, count, sum]: readonly string[]) => ({ count: Number(count), sum: sum as string }),
  };
  const rows = ['PAY,b,T2,2.00,CNY', 'PAY,a,T1,1.00,CNY', 'REFUND,r,b,-0.50,CNY'];

  it('reads a whole bill in the order of the merge', () => {
    const text = ['#bill', ...rows, '#total,3,2.50', ''].join('\n');
    expect(parseBill(text, format).map(({ key, amountMinor }) => [key, amountMinor])).toEqual([
      ['a', 100n],
      ['b', 200n],
      ['r', 50n],
    ]);
  });

  it.each([
    ['no trailer', ['#bill', ...rows]],
    ['no header', [...rows, '#total,3,2.50']],
    ['a row missing', ['#bill', ...rows.slice(1), '#total,3,2.50']],
    ['another sum', ['#bill', ...rows, '#total,3,2.51']],
    ['a row twice', ['#bill', ...rows, rows[0], '#total,4,4.50']],
  ])('refuses a bill with %s', (_, lines) => {
    expect(() => parseBill(lines.join('\n'), format)).toThrow(
      expect.objectContaining({ code: 'BILL_INCOMPLETE' }),
    );
  });
});
