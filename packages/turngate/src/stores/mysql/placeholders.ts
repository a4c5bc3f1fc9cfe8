/** From `$1`, `$2`, … to a finished text: MySQL's own placeholders cannot be repeated or reordered. */
import type { SqlValue } from '../../contract/sql-session.ts';
import { optionError } from '../../core/option.ts';

type Piece = string | number;

const cacheMax = 500;
const cache = new Map<string, readonly Piece[]>();
// Strings, quoted names and comments are passed over: a `$1` in them is text.
const tokens =
  /'(?:[^'\\]|''|\\[\s\S])*'|"(?:[^"\\]|""|\\[\s\S])*"|`(?:[^`]|``)*`|\/\*[\s\S]*?\*\/|--(?=\s)[^\n]*|#[^\n]*|\$(\d+)/g;

/**
 * Puts the values into the text. A placeholder may be repeated and stand anywhere.
 *
 * @param quote the client's own way to write a value, which knows its time zone setting
 * @throws OPTION_INVALID when a placeholder has no value
 */
export function render(
  text: string,
  values: readonly SqlValue[],
  quote: (value: unknown) => string,
): string {
  let out = '';
  for (const piece of piecesOf(text)) {
    if (typeof piece === 'string') {
      out += piece;
      continue;
    }
    const value = values[piece - 1];
    if (value === undefined) {
      throw optionError('values', `at least ${piece}, as the statement says $${piece}`, values);
    }
    out += literal(value, quote);
  }
  return out;
}

/** Whole numbers are written as digits: a quoted one would be compared as a float. */
function literal(value: SqlValue, quote: (value: unknown) => string): string {
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'boolean') return value ? '1' : '0';
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw optionError('value', 'a finite number', value);
  }
  return quote(value instanceof Uint8Array ? Buffer.from(value) : value);
}

/** Texts and placeholder numbers in turn. */
function piecesOf(text: string): readonly Piece[] {
  const known = cache.get(text);
  if (known !== undefined) return known;
  const pieces: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(tokens)) {
    const [token, number] = match;
    if (number === undefined) continue;
    pieces.push(text.slice(from, match.index), Number(number));
    from = match.index + token.length;
  }
  pieces.push(text.slice(from));
  if (cache.size >= cacheMax) cache.clear();
  cache.set(text, pieces);
  return pieces;
}
