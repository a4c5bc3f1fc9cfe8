/** The link a customer pays by: sealed by the shop, so that nobody pays less. */
import type { ChannelAccess } from './client.ts';
import { sign } from './signature.ts';

/** What the link says. */
export interface PayLink {
  readonly paymentNo: string;
  readonly orderNo: string;
  readonly amountMinor: number;
  readonly currency: string;
}

/** The link a customer is sent to. */
export function payUrl({ url = '', secret }: ChannelAccess, link: PayLink): string {
  const text = new URLSearchParams({
    orderNo: link.orderNo,
    amountMinor: String(link.amountMinor),
    currency: link.currency,
  }).toString();
  return `${url}/pay/${link.paymentNo}?${text}&seal=${seal(secret, link)}`;
}

/** The seal over what the link says. */
export function seal(
  secret: string,
  { paymentNo, orderNo, amountMinor, currency }: PayLink,
): string {
  const facts = JSON.stringify([paymentNo, orderNo, amountMinor, currency]);
  return sign(secret, Buffer.from(facts), 0).slice('t=0,v1='.length);
}
