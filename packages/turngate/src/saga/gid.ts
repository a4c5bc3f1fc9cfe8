/** Names of global transactions: they carry their birth, so that an old one is refused, not forgotten. */
import { TurngateError } from '../core/errors.ts';
import { optionError } from '../core/option.ts';
import type { Runtime } from '../runtime/runtime.ts';

// 48 bits of milliseconds since 1970 in 10 digits of base 32 order, then what makes it unique.
const digits = '0123456789abcdefghijklmnopqrstuv';
const form = /^([0-9a-v]{10})-([\x21-\x7e]{1,53})$/;

/** A fresh name: its time, then 128 random bits. */
export function newGid(runtime: Runtime): string {
  return gidAt(runtime.wallMs(), runtime.randomId());
}

/** The name of a time and a suffix of your own, such as an order number: the same call, the same name. */
export function gidAt(atMs: number, suffix: string): string {
  let text = '';
  for (let rest = Math.floor(atMs), i = 0; i < 10; i++, rest = Math.floor(rest / 32)) {
    text = (digits[rest % 32] as string) + text;
  }
  return checkGid(`${text}-${suffix}`);
}

/** @throws OPTION_INVALID */
export function checkGid(gid: unknown): string {
  if (typeof gid === 'string' && form.test(gid)) return gid;
  throw optionError('gid', 'a name made by newGid or gidAt (at most 64 characters)', gid);
}

/** When the name was made, epoch milliseconds. */
export function birthOf(gid: string): number {
  let ms = 0;
  for (const digit of gid.slice(0, 10)) ms = ms * 32 + digits.indexOf(digit);
  return ms;
}

/** @throws GID_EXPIRED for a name older than what is remembered */
export function refuseOld(gid: string, nowMs: number, horizonMs: number): void {
  if (nowMs - birthOf(gid) <= horizonMs) return;
  throw new TurngateError('GID_EXPIRED', `${gid} is older than what the barrier remembers`);
}
