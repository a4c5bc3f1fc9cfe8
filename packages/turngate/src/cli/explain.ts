/** `turngate explain`: the error table, one row at a time. */
import { type ErrorCode, errorTable } from '../core/errors.ts';
import { didYouMean } from './nearest.ts';
import { UsageError } from './usage-error.ts';

/** @throws UsageError for an unknown code */
export function explain(given: string): string {
  const code = given.toUpperCase().replaceAll('-', '_');
  if (!Object.hasOwn(errorTable, code)) {
    const shown = /^\w{1,64}$/.test(code) ? ` ${code}` : ' like that';
    throw new UsageError(`there is no code${shown}${didYouMean(code, Object.keys(errorTable))}`);
  }
  const { outcome, httpStatus, advice } = errorTable[code as ErrorCode];
  return `${code}\noutcome: ${outcome}\nHTTP status: ${httpStatus}\nadvice: ${advice}`;
}
