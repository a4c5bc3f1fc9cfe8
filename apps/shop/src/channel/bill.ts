/** The channel's daily bill: header, one line per movement, trailer with count and sum. */
import type { ChannelBook } from './book.ts';

/** Lines of one day in the channel's time zone (UTC here), ordered by key. */
export function billOf(book: ChannelBook, date: string): string {
  const lines: string[] = [];
  let sumMinor = 0;
  for (const { status, at, paymentNo, tradeNo, amountMinor, currency } of book.payments.values()) {
    if (status !== 'SUCCESS' || !at.startsWith(date)) continue;
    lines.push(['PAY', paymentNo, tradeNo, decimal(amountMinor), currency, at].join(','));
    sumMinor += amountMinor;
  }
  for (const { refundNo, paymentNo, amountMinor, currency, at } of book.refunds.values()) {
    if (!at.startsWith(date)) continue;
    lines.push(['REFUND', refundNo, paymentNo, decimal(-amountMinor), currency, at].join(','));
    sumMinor -= amountMinor;
  }
  lines.sort((a, b) => (a < b ? -1 : 1));
  const head = `#bill,simulator,${date},kind,key,ref,amount,currency,at`;
  return [head, ...lines, `#total,${lines.length},${decimal(sumMinor)}`, ''].join('\n');
}

/** Minor units as a decimal text with two places: amounts never travel as floats. */
function decimal(amountMinor: number): string {
  const sign = amountMinor < 0 ? '-' : '';
  const digits = String(Math.abs(amountMinor)).padStart(3, '0');
  return `${sign}${digits.slice(0, -2)}.${digits.slice(-2)}`;
}
