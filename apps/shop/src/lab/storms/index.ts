/** All storms, in the order of the report. */
import { cancelled } from './cancelled.ts';
import { doubleClick, doubleClickNewKey } from './double-click.ts';
import { failingFirst } from './failing-first.ts';
import { fiftyAtOnce } from './fifty-at-once.ts';
import { flashSale } from './flash-sale.ts';
import { killedMidPayment } from './killed-mid-payment.ts';
import { retryStorm, retryStormNewKey } from './retry-storm.ts';
import type { Storm } from './storm.ts';

export const storms = {
  'double-click': doubleClick,
  'double-click-new-key': doubleClickNewKey,
  'fifty-at-once': fiftyAtOnce,
  'retry-storm': retryStorm,
  'retry-storm-new-key': retryStormNewKey,
  'flash-sale': flashSale,
  'killed-mid-payment': killedMidPayment,
  'failing-first': failingFirst,
  cancelled,
} as const satisfies Record<string, Storm>;

export type StormId = keyof typeof storms;

export const stormIds = Object.keys(storms) as StormId[];
