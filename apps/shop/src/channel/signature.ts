/** The channel's signature: HMAC-SHA256 over the time and the raw bytes, with a shared secret. */
import { createHmac, timingSafeEqual } from 'node:crypto';

/** A signature is good for this long, so that a recorded callback cannot be played again later. */
const signatureLifeS = 300;

const form = /^t=(\d{1,12}),v1=([0-9a-f]{64})$/;

/** Signs a body at a time. */
export function sign(secret: string, body: Buffer, unixS: number): string {
  return `t=${unixS},v1=${digest(secret, unixS, body).toString('hex')}`;
}

/** Undefined when the signature is good, else why not (for the log, never for the caller). */
export function whyUnsigned(
  secret: string,
  body: Buffer,
  header: string | string[] | undefined,
  nowS: number,
): string | undefined {
  const [, time, hex] = (typeof header === 'string' && form.exec(header)) || [];
  if (time === undefined || hex === undefined) return 'no signature in the documented form';
  const unixS = Number(time);
  if (!timingSafeEqual(digest(secret, unixS, body), Buffer.from(hex, 'hex'))) return 'wrong digest';
  if (Math.abs(nowS - unixS) > signatureLifeS) return 'too old or from the future';
  return undefined;
}

function digest(secret: string, unixS: number, body: Buffer): Buffer {
  return createHmac('sha256', secret).update(`${unixS}.`).update(body).digest();
}
