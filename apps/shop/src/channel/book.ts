/** What the channel knows: payments, trades, refunds; kept in a journal that survives kill -9. */
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';

/** A payment as the channel sees it. */
export interface ChannelPayment {
  readonly paymentNo: string;
  readonly orderNo: string;
  readonly amountMinor: number;
  readonly currency: string;
  readonly status: 'SUCCESS' | 'FAILED' | 'CLOSED';
  readonly tradeNo: string;
  readonly at: string;
}

/** A refund the channel has carried out. */
export interface ChannelRefund {
  readonly refundNo: string;
  readonly paymentNo: string;
  readonly amountMinor: number;
  readonly currency: string;
  readonly at: string;
}

type Line = { readonly payment: ChannelPayment } | { readonly refund: ChannelRefund };

/** The first fact about a number stands; saying it again changes nothing. */
export class ChannelBook {
  readonly payments = new Map<string, ChannelPayment>();
  readonly refunds = new Map<string, ChannelRefund>();
  private readonly file: number;

  constructor(path: string) {
    const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
    // What follows the last line end was never acknowledged: the process died while writing it.
    for (const line of text.slice(0, text.lastIndexOf('\n') + 1).split('\n')) {
      if (line !== '') this.take(JSON.parse(line) as Line);
    }
    this.file = openSync(path, 'a');
    if (text !== '' && !text.endsWith('\n')) writeSync(this.file, '\n');
  }

  /** The payment as it stands: a failed one may still succeed, everything else is final. */
  settle(payment: ChannelPayment): ChannelPayment {
    const known = this.payments.get(payment.paymentNo);
    if (known !== undefined && !(known.status === 'FAILED' && payment.status !== 'FAILED')) {
      return known;
    }
    this.keep({ payment });
    return payment;
  }

  /** The refund as it stands; undefined when it would exceed the payment. */
  refund(refund: ChannelRefund): ChannelRefund | undefined {
    const known = this.refunds.get(refund.refundNo);
    if (known !== undefined) return known;
    const payment = this.payments.get(refund.paymentNo);
    if (payment?.status !== 'SUCCESS') return undefined;
    const before = [...this.refunds.values()]
      .filter(({ paymentNo }) => paymentNo === refund.paymentNo)
      .reduce((sum, { amountMinor }) => sum + amountMinor, 0);
    if (before + refund.amountMinor > payment.amountMinor) return undefined;
    this.keep({ refund });
    return refund;
  }

  close(): void {
    closeSync(this.file);
  }

  private keep(line: Line): void {
    writeSync(this.file, `${JSON.stringify(line)}\n`);
    fsyncSync(this.file); // Acknowledged means kept.
    this.take(line);
  }

  private take(line: Line): void {
    if ('payment' in line) this.payments.set(line.payment.paymentNo, line.payment);
    else this.refunds.set(line.refund.refundNo, line.refund);
  }
}
