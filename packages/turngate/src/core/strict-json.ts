/**
 * JSON.parse that refuses what JSON.parse hides: a member name given twice (the last would win, so
 * two readers can see two amounts) and integers beyond 2^53 - 1 (their last digits are gone).
 */
import { TurngateError } from './errors.ts';

/** @throws SyntaxError for bad JSON; OPTION_INVALID for a repeated name or an unsafe integer */
export function parseStrictJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  checkTokens(text);
  return value;
}

const token = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[{}[\]:,]/g;

/** The text is known to be valid JSON here, so a flat walk over its tokens is enough. */
function checkTokens(text: string): void {
  const scopes: (Set<string> | undefined)[] = [];
  let previous = '';
  for (const [lexeme] of text.matchAll(token)) {
    if (lexeme === '{') scopes.push(new Set());
    else if (lexeme === '[') scopes.push(undefined);
    else if (lexeme === '}' || lexeme === ']') scopes.pop();
    else if (lexeme[0] === '"' && (previous === '{' || previous === ',')) {
      noteName(scopes.at(-1), lexeme);
    } else if (lexeme[0] === '-' || (lexeme[0] as string) >= '0') checkNumber(lexeme);
    previous = lexeme;
  }
}

function noteName(names: Set<string> | undefined, lexeme: string): void {
  if (names === undefined) return; // An array element, not a member name.
  const name = JSON.parse(lexeme) as string;
  if (names.has(name)) {
    throw new TurngateError('OPTION_INVALID', 'a JSON object names a member twice');
  }
  names.add(name);
}

function checkNumber(lexeme: string): void {
  if (!/^-?\d+$/.test(lexeme) || Number.isSafeInteger(Number(lexeme))) return;
  throw new TurngateError(
    'OPTION_INVALID',
    'a JSON integer is beyond 2^53 - 1; send it as a string',
  );
}
