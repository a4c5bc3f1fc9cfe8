/** Carries refunds out at the channel. The number never changes, so asking again is safe. */
import type { SqlSession } from 'turngate/contract';
import type { ChannelClient } from '../channel/client.ts';
import { houseAccounts, post } from './ledger.ts';
import { nowMs, type Store } from './store.ts';

const batchRows = 20;
const pauseMsMax = 300_000;

/** One round over the due refunds; returns how many were settled. */
export async function carryOutRefunds(store: Store, channel: ChannelClient): Promise<number> {
  if (!channel.reachable) return 0;
  const { database } = store;
  const { rows } = await database.query(
    `SELECT order_no, refund_no, payment_no, amount_minor, attempts, reason FROM shop_refund
     WHERE status = 'PENDING' AND reason <> 'RETURN' AND next_at_ms <= ${nowMs(database)}
     ORDER BY next_at_ms LIMIT ${batchRows}`,
    [],
  );
  let settled = 0;
  for (const row of rows) if (await carryOut(store, channel, row)) settled++;
  return settled;
}

async function carryOut(
  { database }: Store,
  channel: ChannelClient,
  row: Record<string, unknown>,
): Promise<boolean> {
  const orderNo = String(row['order_no']);
  const refundNo = String(row['refund_no']);
  const amountMinor = Number(row['amount_minor']);
  const wish = {
    refundNo: `${orderNo}/${refundNo}`,
    paymentNo: String(row['payment_no']),
    amountMinor,
  };
  const done = await channel.refund(wish).catch(() => undefined);
  if (done === undefined) {
    const pauseMs = Math.min(pauseMsMax, 1_000 * 2 ** Math.min(Number(row['attempts']), 20));
    await database.query(
      `UPDATE shop_refund SET attempts = attempts + 1, next_at_ms = ${nowMs(database)} + $3
       WHERE order_no = $1 AND refund_no = $2 AND status = 'PENDING'`,
      [orderNo, refundNo, pauseMs],
    );
    return false;
  }
  await database.transaction(async (sql) => {
    const { affectedRows } = await sql.query(
      `UPDATE shop_refund SET status = $3, attempts = attempts + 1
       WHERE order_no = $1 AND refund_no = $2 AND status = 'PENDING'`,
      [orderNo, refundNo, done ? 'SUCCEEDED' : 'FAILED'],
    );
    if (affectedRows === 0) return; // Another node was faster.
    if (row['reason'] === 'LATE_PAYMENT') {
      if (done) await sendBack(sql, wish.paymentNo, amountMinor);
    } else if (!done) await giveQuotaBack(sql, { orderNo, refundNo, amountMinor });
  });
  return true;
}

async function sendBack(sql: SqlSession, paymentNo: string, amountMinor: number): Promise<void> {
  await post(sql, {
    txnId: `late-refund:${paymentNo}`,
    kind: 'late refund',
    entries: [
      { account: houseAccounts.suspense, amountMinor: -amountMinor },
      { account: houseAccounts.channel, amountMinor },
    ],
  });
}

/** A refund the channel refuses gives its quota back, once: only the row's move leads here. */
export async function giveQuotaBack(
  sql: SqlSession,
  refund: { readonly orderNo: string; readonly refundNo: string; readonly amountMinor: number },
): Promise<void> {
  const { orderNo, refundNo, amountMinor } = refund;
  await sql.query(
    'UPDATE shop_payment SET refunded_minor = refunded_minor - $2 WHERE order_no = $1',
    [orderNo, amountMinor],
  );
  await post(sql, {
    txnId: `refund-failed:${orderNo}:${refundNo}`,
    kind: 'refund failed',
    entries: [
      { account: houseAccounts.channel, amountMinor: -amountMinor },
      { account: houseAccounts.sales, amountMinor },
    ],
  });
}
