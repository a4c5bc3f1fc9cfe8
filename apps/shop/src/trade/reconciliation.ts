/** Orders, our payment flow and the channel's bill of one day, compared by the library. */
import type { SqlValue } from 'turngate/contract';
import {
  type BillFormat,
  compareLines,
  type Line,
  type LinePlace,
  parseBill,
  ReconcileStore,
  type Report,
  reconcile,
  type Side,
} from 'turngate/reconcile';
import type { ChannelClient } from '../channel/client.ts';
import { ShopError } from './shop-error.ts';
import type { Store } from './store.ts';

const dayMs = 86_400_000;
const marginMs = 7_200_000;
const pageRows = 1_000;

/** A day's report as clients see it; amounts are minor units. */
export interface Reconciliation {
  readonly date: string;
  readonly channel: string;
  readonly counts: Readonly<Record<string, number>>;
  readonly breaks: readonly {
    readonly code: string;
    readonly severity: string;
    readonly kind: string;
    readonly key: string;
    readonly amountMinor: number;
    readonly currency: string;
    readonly detail: string;
  }[];
}

/** Which day of which channel. */
export interface ReconciliationDay {
  readonly date: string;
  readonly channel: string;
}

/**
 * Compares a day once; a repeat answers the finished report.
 *
 * @throws REQUEST_IN_PROGRESS through the caller when another node is at it
 */
export async function reconcileDay(
  store: Store,
  client: ChannelClient,
  { date, channel }: ReconciliationDay,
): Promise<Reconciliation> {
  const { database } = store;
  const fromMs = Date.parse(`${date}T00:00:00Z`);
  // The bill first: one that is missing or broken must not leave a half run behind.
  const bill = client.reachable ? parseBill(await client.bill(date), billFormat) : [];
  const result = await reconcile({
    database,
    channel,
    date,
    fromMs,
    toMs: fromMs + dayMs,
    marginMs,
    open: (side, after) =>
      side === 'bill' ? billSource(bill, after) : rows(store, side, fromMs, after),
  });
  if (result.kind === 'busy') {
    throw new ShopError('RECONCILIATION_RUNNING', `the day ${date} is being compared right now`);
  }
  return await withCallbackBreaks(store, result.report);
}

/** @throws RECONCILIATION_NOT_FOUND */
export async function readReconciliation(
  store: Store,
  { date, channel }: ReconciliationDay,
): Promise<Reconciliation> {
  const report = await new ReconcileStore(store.database, channel, date).report();
  return await withCallbackBreaks(store, report);
}

/** Callbacks that were refused on the day are differences too. */
async function withCallbackBreaks({ database }: Store, report: Report): Promise<Reconciliation> {
  const fromMs = Date.parse(`${report.date}T00:00:00Z`);
  const { rows: noted } = await database.query(
    `SELECT code, break_key, detail FROM shop_break WHERE at_ms >= $1 AND at_ms < $2
     ORDER BY code, break_key`,
    [fromMs, fromMs + dayMs],
  );
  const counts: Record<string, number> = { ...report.counts };
  for (const { code } of noted) counts[String(code)] = (counts[String(code)] ?? 0) + 1;
  return {
    date: report.date,
    channel: report.channel,
    counts,
    breaks: [
      ...report.breaks.map((one) => ({ ...one, amountMinor: Number(one.amountMinor) })),
      ...noted.map((row) => ({
        code: String(row['code']),
        severity: 'high',
        kind: 'CALLBACK',
        key: String(row['break_key']),
        amountMinor: 0,
        currency: '',
        detail: String(row['detail']),
      })),
    ],
  };
}

const billFormat: BillFormat = {
  currency: 'CNY',
  line: ([kind = '', key = '', ref = '', amount = '', currency = '', at = '']) => ({
    kind,
    key,
    ref: `${kind}/${key}/${ref}`,
    ...(kind === 'PAY' ? { alt: ref } : {}),
    amount,
    currency,
    status: 'SUCCESS',
    atMs: Date.parse(at),
  }),
  trailer: ([, count = '', sum = '']) => ({ count: Number(count), sum }),
};

async function* billSource(
  lines: readonly Line[],
  after: LinePlace | undefined,
): AsyncGenerator<readonly Line[]> {
  yield after === undefined ? lines : lines.filter((line) => compareLines(line, after) > 0);
}

/** One side from the database in pages by key; each kind is a query of its own. */
async function* rows(
  { database }: Store,
  side: Exclude<Side, 'bill'>,
  fromMs: number,
  after: LinePlace | undefined,
): AsyncGenerator<readonly Line[]> {
  for (const [kind, text] of Object.entries(queries[side])) {
    if (after !== undefined && after.kind > kind) continue;
    let key = after?.kind === kind ? after.key : '';
    for (;;) {
      const values: SqlValue[] = [fromMs - marginMs, fromMs + dayMs + marginMs, key];
      const page = await database.query(pageOf(text), values);
      if (page.rows.length > 0) yield page.rows.map((row) => lineOf(kind, row));
      if (page.rows.length < pageRows) break;
      key = String(page.rows.at(-1)?.['line_key']);
    }
  }
}

/** Live orders and archived ones: what belongs to an order is always on its side. */
function pageOf(text: string): string {
  const archived = text.replace(/\bshop_(order|payment|payment_attempt|refund)\b/g, '$&_archive');
  const parts = [text, archived].map((part) => `(${part} LIMIT ${pageRows})`).join(' UNION ALL ');
  return `SELECT * FROM (${parts}) every ORDER BY line_key LIMIT ${pageRows}`;
}

function lineOf(kind: string, row: Record<string, unknown>): Line {
  const spent = row['spent_minor'];
  return {
    kind,
    key: String(row['line_key']),
    ref: String(row['line_key']),
    amountMinor: BigInt(String(row['amount_minor'])),
    currency: String(row['currency']),
    status: String(row['status']) as Line['status'],
    atMs: Number(row['at_ms']),
    ...(row['alt'] == null ? {} : { alt: String(row['alt']) }),
    ...(spent == null
      ? {}
      : {
          quota: {
            spentMinor: BigInt(String(spent)),
            capturedMinor: BigInt(String(row['captured_minor'])),
          },
        }),
  };
}

/** Keys are unique per kind and side, so a page never ends inside one. */
const queries: Record<Exclude<Side, 'bill'>, Record<string, string>> = {
  order: {
    // Money that came too late and goes back is accounted for like money that was booked.
    PAY: `SELECT t.payment_no AS line_key, o.amount_minor, o.currency, t.created_at_ms AS at_ms,
        CASE WHEN p.order_no IS NOT NULL OR r.refund_no IS NOT NULL THEN 'PAID'
          WHEN o.status IN ('CLOSED', 'CANCELLED') THEN 'CLOSED' ELSE 'UNPAID' END AS status
      FROM shop_payment_attempt t
      JOIN shop_order o ON o.order_no = t.order_no
      LEFT JOIN shop_payment p ON p.order_no = t.order_no AND p.payment_no = t.payment_no
      LEFT JOIN shop_refund r ON r.payment_no = t.payment_no AND r.reason = 'LATE_PAYMENT'
        AND r.order_no = t.order_no
      WHERE coalesce(t.settled_at_ms, t.created_at_ms) >= $1
        AND coalesce(t.settled_at_ms, t.created_at_ms) < $2 AND t.payment_no > $3
      ORDER BY t.payment_no`,
  },
  flow: {
    PAY: `SELECT payment_no AS line_key, amount_minor, currency, status, trade_no AS alt,
        coalesce(settled_at_ms, created_at_ms) AS at_ms
      FROM shop_payment_attempt
      WHERE coalesce(settled_at_ms, created_at_ms) >= $1
        AND coalesce(settled_at_ms, created_at_ms) < $2 AND payment_no > $3
      ORDER BY payment_no`,
    REFUND: `SELECT concat(r.order_no, '/', r.refund_no) AS line_key, r.amount_minor, o.currency,
        CASE r.status WHEN 'SUCCEEDED' THEN 'SUCCESS' ELSE r.status END AS status,
        r.created_at_ms AS at_ms, p.refunded_minor AS spent_minor, p.amount_minor AS captured_minor
      FROM shop_refund r
      JOIN shop_order o ON o.order_no = r.order_no
      LEFT JOIN shop_payment p ON p.payment_no = r.payment_no AND r.reason <> 'LATE_PAYMENT'
      WHERE r.payment_no IS NOT NULL AND r.created_at_ms >= $1 AND r.created_at_ms < $2
        AND concat(r.order_no, '/', r.refund_no) > $3
      ORDER BY concat(r.order_no, '/', r.refund_no)`,
  },
};
