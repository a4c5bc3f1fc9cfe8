/** Checks at the border: every option once, before any I/O, naming option, range and value. */
import { show, TurngateError } from './errors.ts';

/** The error for a bad option; `expected` reads after "must be". */
export function optionError(option: string, expected: string, got: unknown): TurngateError {
  return new TurngateError('OPTION_INVALID', `${option} must be ${expected}; got ${show(got)}`);
}

/** Accepts an integer from `min` to `max`, or the default when the option was left out. */
export function integerOption(
  option: string,
  value: number | undefined,
  range: { readonly min: number; readonly max: number; readonly fallback: number },
): number {
  if (value === undefined) return range.fallback;
  if (!Number.isSafeInteger(value) || value < range.min || value > range.max) {
    throw optionError(option, `an integer from ${range.min} to ${range.max}`, value);
  }
  return value;
}

/** Accepts one of the listed words, or the default when the option was left out. */
export function wordOption<Word extends string>(
  option: string,
  value: Word | undefined,
  words: readonly Word[],
  fallback: Word,
): Word {
  if (value === undefined) return fallback;
  if (!words.includes(value)) throw optionError(option, `one of ${words.join(', ')}`, value);
  return value;
}

/** Refuses names that are not in the list, so that a misspelt option is never silently ignored. */
export function knownOptions(what: string, given: object, known: readonly string[]): void {
  for (const name of Object.keys(given)) {
    if (known.includes(name)) continue;
    const list = known.join(', ');
    throw new TurngateError('OPTION_INVALID', `${what}: unknown option "${name}"; known: ${list}`);
  }
}

/** Refuses anything that is not a function. */
export function functionOption(option: string, value: unknown): void {
  if (typeof value !== 'function') throw optionError(option, 'a function', value);
}
