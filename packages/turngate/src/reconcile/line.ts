/** The normal form: whatever a side calls its rows, here they are lines. */

/** Which side tells it: expected (orders), recorded (our payment flow), billed (the channel). */
export type Side = 'order' | 'flow' | 'bill';

/** How the side sees it. Orders: PAID, UNPAID or CLOSED; flow and bill: SUCCESS, PENDING, FAILED. */
export type LineStatus = 'SUCCESS' | 'PENDING' | 'FAILED' | 'PAID' | 'UNPAID' | 'CLOSED';

/** One line of one side. */
export interface Line {
  /** PAY, REFUND or FEE; other kinds are reported as UNKNOWN_KIND. */
  readonly kind: string;
  /** What all sides know it by: the merchant's payment or refund number. */
  readonly key: string;
  /** The row's own identity within its side. */
  readonly ref: string;
  /** A second key, such as the channel's transaction number, for lines whose first key got lost. */
  readonly alt?: string;
  readonly amountMinor: bigint;
  readonly currency: string;
  readonly status: LineStatus;
  /** When it happened, epoch milliseconds; decides which day it belongs to. */
  readonly atMs: number;
  /** Refunds: what of the payment's capture is spent with this one, and the capture itself. */
  readonly quota?: { readonly spentMinor: bigint; readonly capturedMinor: bigint };
}

/** A side's lines in batches, ordered bytewise by kind and key. */
export type LineSource = AsyncIterable<readonly Line[]>;

/** What three sides say about one kind and key. */
export interface Group {
  readonly kind: string;
  readonly key: string;
  readonly order: readonly Line[];
  readonly flow: readonly Line[];
  readonly bill: readonly Line[];
}

/** Orders lines bytewise by kind and key, as every source must. */
export function compareLines(a: LinePlace, b: LinePlace): number {
  return compareText(a.kind, b.kind) || compareText(a.key, b.key);
}

/** Where a line stands in the order. */
export type LinePlace = Pick<Line, 'kind' | 'key'>;

/** Compares as UTF-8 bytes do; JavaScript's `<` differs from it beyond the BMP. */
function compareText(a: string, b: string): number {
  if (a === b) return 0;
  for (let i = 0; i < a.length && i < b.length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x === y) continue;
    const xHigh = x >= 0xd800 && x <= 0xdfff;
    const yHigh = y >= 0xd800 && y <= 0xdfff;
    if (xHigh !== yHigh) return xHigh ? 1 : -1; // Surrogates stand for characters above the rest.
    return x - y;
  }
  return a.length - b.length;
}
