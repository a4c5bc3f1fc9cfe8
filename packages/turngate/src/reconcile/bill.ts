/** Reads a channel's bill file: header, lines, trailer. A bill that is not whole is no bill. */
import { TurngateError } from '../core/errors.ts';
import { compareLines, type Line } from './line.ts';
import { parseAmount } from './money.ts';

/** How a channel's bill file is read. */
export interface BillFormat {
  /** Maps one line's fields; undefined skips it (never silently: the trailer counts it). */
  readonly line: (
    fields: readonly string[],
  ) => Omit<Line, 'amountMinor'> & { readonly amount: string };
  /** Finds count and sum in the trailer. */
  readonly trailer: (fields: readonly string[]) => { readonly count: number; readonly sum: string };
  readonly currency: string;
}

/**
 * The lines of a bill in the merge's order.
 *
 * @throws BILL_INCOMPLETE when header, trailer, count or sum are missing or wrong, or a row is
 * repeated: then nothing may be concluded from it
 */
export function parseBill(text: string, format: BillFormat): readonly Line[] {
  const rows = text.split(/\r?\n/).filter((row) => row !== '');
  const head = rows.shift();
  const foot = rows.pop();
  if (head?.startsWith('#') !== true) throw incomplete('its header is missing');
  if (foot?.startsWith('#') !== true) throw incomplete('its trailer is missing');
  const seen = new Set<string>();
  let sum = 0n;
  const lines = rows.map((row, i) => {
    if (seen.has(row)) throw incomplete(`row ${i + 2} is repeated`);
    seen.add(row);
    const { amount, ...line } = format.line(row.split(','));
    const amountMinor = parseAmount(amount, line.currency);
    sum += amountMinor;
    return { ...line, amountMinor: amountMinor < 0n ? -amountMinor : amountMinor };
  });
  const told = format.trailer(foot.split(','));
  if (told.count !== lines.length) throw incomplete(`${lines.length} rows, told ${told.count}`);
  if (parseAmount(told.sum, format.currency) !== sum) throw incomplete('its sum is wrong');
  return lines.sort(compareLines);
}

function incomplete(why: string): TurngateError {
  return new TurngateError('BILL_INCOMPLETE', `the bill is not whole: ${why}`);
}
