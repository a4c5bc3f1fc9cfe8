/** A fence on its way over HTTP. */
import { show, TurngateError } from '../core/errors.ts';
import { wordOption } from '../core/option.ts';
import { checkFence } from './fence-number.ts';
import type { FenceVerb } from './guard.ts';

/** The header that carries the step and the fence: `Turngate-Fence: check 1795992872123456`. */
export const fenceHeaderName = 'Turngate-Fence';

/**
 * The header's value. Send `enter` with the first request of a hold, before anything is read, and
 * `check` with every later one. A receiver that has not seen the `enter` refuses the `check`.
 *
 * Decimal digits, not a structured-field integer: those end at 15 digits and fences have 16 or more.
 *
 * @throws OPTION_INVALID
 */
export function formatFence(verb: FenceVerb, fence: bigint): string {
  return `${wordOption('verb', verb, ['enter', 'check'], verb)} ${checkFence(fence)}`;
}

/**
 * Reads the header's value.
 *
 * @throws FENCE_INVALID (400) when it is missing, repeated or malformed
 */
export function parseFence(value: string | readonly string[] | null | undefined): {
  readonly verb: FenceVerb;
  readonly fence: bigint;
} {
  const [one] = Array.isArray(value) && value.length === 1 ? value : [value];
  // 19 digits: a signed 64-bit number. Leading zeros would give one fence two spellings.
  const match = typeof one === 'string' ? /^(enter|check) ([1-9]\d{0,18})$/.exec(one) : null;
  const fence = BigInt(match?.[2] ?? 0);
  if (match === null || fence > 2n ** 63n - 1n) {
    const got = Array.isArray(one) ? 'several values' : show(one);
    throw new TurngateError('FENCE_INVALID', `${fenceHeaderName} is malformed: ${got}`);
  }
  return { verb: match[1] as FenceVerb, fence };
}
