/** Amounts: decimal text in, integer minor units out. Floats never touch money. */
import { optionError } from '../core/option.ts';

// ISO 4217 minor units that are not 2.
const digitsByCurrency: Readonly<Record<string, number>> = {
  BHD: 3,
  BIF: 0,
  CLF: 4,
  CLP: 0,
  DJF: 0,
  GNF: 0,
  IQD: 3,
  ISK: 0,
  JOD: 3,
  JPY: 0,
  KMF: 0,
  KRW: 0,
  KWD: 3,
  LYD: 3,
  OMR: 3,
  PYG: 0,
  RWF: 0,
  TND: 3,
  UGX: 0,
  UYI: 0,
  UYW: 4,
  VND: 0,
  VUV: 0,
  XAF: 0,
  XOF: 0,
  XPF: 0,
};

const decimal = /^([+-]?)(\d{1,18})(?:\.(\d{1,18}))?$/;

/**
 * Reads a decimal text such as `-12.50` as minor units of its currency.
 *
 * @throws OPTION_INVALID for anything that is not a plain decimal text, or has more digits than the
 * currency has (a hundredth of a yen is a mistake, not a rounding)
 */
export function parseAmount(text: unknown, currency: string): bigint {
  const [, sign, whole, part = ''] = (typeof text === 'string' && decimal.exec(text)) || [];
  if (whole === undefined) throw optionError('amount', 'a decimal text such as "12.50"', text);
  const digits = digitsByCurrency[currency] ?? 2;
  if (part.length > digits && /[1-9]/.test(part.slice(digits))) {
    throw optionError('amount', `a decimal text with at most ${digits} places (${currency})`, text);
  }
  const minor = BigInt(whole + part.slice(0, digits).padEnd(digits, '0'));
  return sign === '-' ? -minor : minor;
}
