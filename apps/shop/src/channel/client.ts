/** What the shop asks the channel. An answer that does not come is "unknown", never "no". */
import { sign } from './signature.ts';

/** Where the channel is and what is shared with it. */
export interface ChannelAccess {
  /** Signs the channel's callbacks and our requests. */
  readonly secret: string;
  /** Undefined: there is no channel to ask (yet), only callbacks come. */
  url: string | undefined;
}

/** A payment to ask about. */
export interface PaymentFacts {
  readonly paymentNo: string;
  readonly orderNo: string;
  readonly amountMinor: number;
  readonly currency: string;
}

/** How it stands at the channel. */
export interface PaymentState {
  readonly status: 'SUCCESS' | 'FAILED' | 'CLOSED' | 'UNPAID';
  readonly tradeNo?: string;
  readonly at?: string;
}

const answerMs = 5_000;

/** The shop's side of the channel's calls. */
export class ChannelClient {
  private readonly access: ChannelAccess;

  constructor(access: ChannelAccess) {
    this.access = access;
  }

  get reachable(): boolean {
    return this.access.url !== undefined;
  }

  /** Closes the payment unless it was made before; the answer says which. */
  async close(payment: PaymentFacts): Promise<PaymentState> {
    return (await this.post('/api/payments/close', payment)) as PaymentState;
  }

  /** Gives money back; the number is the key for ever. False: the channel refuses for good. */
  async refund(refund: {
    readonly refundNo: string;
    readonly paymentNo: string;
    readonly amountMinor: number;
  }): Promise<boolean> {
    return (await this.post('/api/refunds', refund)) !== undefined;
  }

  /** The daily bill as text. */
  async bill(date: string): Promise<string> {
    const path = `/api/bills/${date}`;
    const response = await fetch(`${this.access.url}${path}`, {
      headers: this.signature(Buffer.from(path)),
      signal: AbortSignal.timeout(answerMs),
    });
    if (!response.ok) throw new Error(`the channel answered ${response.status} to a bill`);
    return await response.text();
  }

  /** Undefined: refused for good. Throws when it is not known what happened. */
  private async post(path: string, value: object): Promise<unknown> {
    const body = Buffer.from(JSON.stringify(value));
    const response = await fetch(`${this.access.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...this.signature(body) },
      body,
      signal: AbortSignal.timeout(answerMs),
    });
    if (response.ok) return await response.json();
    await response.arrayBuffer();
    if (response.status === 409 || response.status === 422) return undefined;
    throw new Error(`the channel answered ${response.status}`);
  }

  private signature(body: Buffer): Record<string, string> {
    const nowS = Math.floor(Date.now() / 1000);
    return { 'channel-signature': sign(this.access.secret, body, nowS) };
  }
}
