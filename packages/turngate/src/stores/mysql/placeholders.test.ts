import { describe, expect, it } from 'vitest';
import { render } from './placeholders.ts';

const quote = (value: unknown): string =>
  value === null ? 'NULL' : typeof value === 'number' ? String(value) : `'${String(value)}'`;

describe('placeholders', () => {
  it.each([
    ['SELECT $1, $2', ['a', 2], `SELECT 'a', 2`],
    ['repeated and reordered: $2 $1 $2', [1, 'b'], `repeated and reordered: 'b' 1 'b'`],
    ['$10 $1', [1, 2, 3, 4, 5, 6, 7, 8, 9, 'ten'], `'ten' 1`],
    [`'$1' "$1" \`$1\` $1`, [7], `'$1' "$1" \`$1\` 7`],
    [`'it''s $1' 'a\\'$1' $1`, [7], `'it''s $1' 'a\\'$1' 7`],
    ['/* $1 */ $1 -- $1\n# $1\n$1', [7], '/* $1 */ 7 -- $1\n# $1\n7'],
    ['a--$1', [7], 'a--7'],
    ['?', [], '?'],
    ['$1 $2 $3', [9_007_199_254_740_993n, true, null], '9007199254740993 1 NULL'],
    ['$1', ['$2 ? $1'], `'$2 ? $1'`],
  ])('%s', (text, values, expected) => {
    expect(render(text, values, quote)).toBe(expected);
    expect(render(text, values, quote)).toBe(expected); // Also from the cache.
  });

  it('refuses a placeholder without a value, and numbers that are none', () => {
    expect(() => render('$1 $2', [1], quote)).toThrow(/OPTION_INVALID|at least 2/);
    expect(() => render('$1', [Number.NaN], quote)).toThrow(/finite/);
  });
});
