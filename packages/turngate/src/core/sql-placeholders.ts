/** From `$1`, `$2`, … to the placeholders of a client. Text only, no I/O. */
import { optionError } from './option.ts';

/** A statement cut at its placeholders: texts and numbers in turn. */
export type SqlPieces = readonly (string | number)[];

// Strings, quoted names and comments are passed over: a `$1` in them is text. A backslash escapes in
// MySQL's strings only.
const tokens = {
  standard: /'(?:[^']|'')*'|"(?:[^"]|"")*"|\/\*[\s\S]*?\*\/|--[^\n]*|\$(\d+)/g,
  mysql:
    /'(?:[^'\\]|''|\\[\s\S])*'|"(?:[^"\\]|""|\\[\s\S])*"|`(?:[^`]|``)*`|\/\*[\s\S]*?\*\/|--(?=\s)[^\n]*|#[^\n]*|\$(\d+)/g,
} as const;

const cacheMax = 500;
const caches = { standard: new Map<string, SqlPieces>(), mysql: new Map<string, SqlPieces>() };

/** Cuts a text at its placeholders; remembers the last few hundred texts. */
export function sqlPieces(text: string, dialect: 'postgres' | 'mysql' | 'sqlite'): SqlPieces {
  const syntax = dialect === 'mysql' ? 'mysql' : 'standard';
  const cache = caches[syntax];
  const known = cache.get(text);
  if (known !== undefined) return known;
  const pieces: (string | number)[] = [];
  let from = 0;
  for (const match of text.matchAll(tokens[syntax])) {
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

/**
 * The text with a client's own placeholders, and its values in the order of their places: `?` cannot
 * be repeated or reordered, `$1` can.
 *
 * @param place the placeholder of the n-th place, counted from 1
 * @throws OPTION_INVALID when a placeholder has no value
 */
export function placed<Value>(
  pieces: SqlPieces,
  values: readonly Value[],
  place: (n: number) => string,
): { readonly text: string; readonly values: Value[] } {
  let text = '';
  const ordered: Value[] = [];
  for (const piece of pieces) {
    if (typeof piece === 'string') {
      text += piece;
      continue;
    }
    const value = values[piece - 1];
    if (value === undefined) {
      throw optionError('values', `at least ${piece}, as the statement says $${piece}`, values);
    }
    ordered.push(value);
    text += place(ordered.length);
  }
  return { text, values: ordered };
}
