/** Callbacks as the channel signs them. */
import { sign } from '../../dist/channel/signature.js';
import { type Answer, call, channelSecret } from './shop.ts';

let serial = 0;

/** A success about an attempt for one unit of what `makeSku` makes. */
export function successOf(attempt: {
  readonly orderNo: string;
  readonly paymentNo: string;
}): Record<string, unknown> {
  serial++;
  return {
    eventId: `event-${process.pid}-${serial}`,
    tradeNo: `trade-${process.pid}-${serial}`,
    amountMinor: 1250,
    currency: 'CNY',
    status: 'SUCCESS',
    paidAt: '2026-11-29T10:00:00Z',
    ...attempt,
  };
}

export function sendCallback(base: string, event: Record<string, unknown>): Promise<Answer> {
  const raw = JSON.stringify(event);
  const signature = sign(channelSecret, Buffer.from(raw), Math.floor(Date.now() / 1_000));
  return call(`${base}/api/callbacks/payment`, 'POST', raw, { 'channel-signature': signature });
}
