/**
 * Tells the shop how payments ended, again and again until it says "success": late, doubled, in any
 * order, and now and then forged, as told by the behaviour.
 */
import { randomUUID } from 'node:crypto';
import type { ChannelPayment } from './book.ts';
import { sign } from './signature.ts';

/** How badly the channel behaves. Shares are from 0 to 1. */
export interface Behaviour {
  /** Share of callbacks that are sent twice at once. */
  readonly duplicateShare: number;
  /** Share that is preceded by one with a wrong signature. */
  readonly forgedShare: number;
  /** Each callback is delayed by a random time up to this, which reorders them too. */
  readonly delayMsMax: number;
  /** Pauses between tries; the last one repeats until `tries` are used up. */
  readonly retryMs: readonly number[];
  readonly tries: number;
}

const calm: Behaviour = {
  duplicateShare: 0,
  forgedShare: 0,
  delayMsMax: 0,
  retryMs: [1_000, 2_000, 5_000, 15_000, 60_000],
  tries: 20,
};

/** Sends callbacks until they are acknowledged. */
export class Notifier {
  behaviour: Behaviour = calm;
  private readonly url: string;
  private readonly secret: string;
  private readonly timers = new Set<NodeJS.Timeout>();

  constructor(url: string, secret: string) {
    this.url = url;
    this.secret = secret;
  }

  /** One event; every try of it carries the same id. */
  notify(payment: ChannelPayment): void {
    const { at, status, ...facts } = payment;
    const event = { eventId: randomUUID(), ...facts, status, paidAt: at };
    const body = JSON.stringify(event);
    const twice = Math.random() < this.behaviour.duplicateShare;
    this.later(Math.random() * this.behaviour.delayMsMax, () => void this.deliver(body, 0));
    if (twice) this.later(Math.random() * this.behaviour.delayMsMax, () => void this.send(body));
  }

  /** How many deliveries are still to come. */
  get pending(): number {
    return this.timers.size;
  }

  stop(): void {
    for (const timer of this.timers) clearTimeout(timer);
    this.timers.clear();
  }

  private later(delayMs: number, act: () => void): void {
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      act();
    }, delayMs);
    this.timers.add(timer);
  }

  private async deliver(body: string, tries: number): Promise<void> {
    if (Math.random() < this.behaviour.forgedShare) await this.send(body, 'not the secret');
    if (await this.send(body)) return;
    const { retryMs, tries: triesMax } = this.behaviour;
    if (tries + 1 >= triesMax) return;
    const pauseMs = retryMs[Math.min(tries, retryMs.length - 1)] ?? 1_000;
    this.later(pauseMs, () => void this.deliver(body, tries + 1));
  }

  /** True only for the exact acknowledgement. */
  private async send(body: string, secret = this.secret): Promise<boolean> {
    try {
      const response = await fetch(this.url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'channel-signature': sign(secret, Buffer.from(body), Math.floor(Date.now() / 1000)),
        },
        body,
        signal: AbortSignal.timeout(5_000),
      });
      return response.status === 200 && (await response.text()) === 'success';
    } catch {
      return false; // Not reached, or no answer in time: sent again later.
    }
  }
}
