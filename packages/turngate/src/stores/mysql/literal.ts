/**
 * Values inside our own statements, written so that no setting of the connection matters: not its
 * character set, not NO_BACKSLASH_ESCAPES, not the driver's formatting.
 */

/** A text as its UTF-8 bytes, for BINARY, VARBINARY and BLOB columns. */
export function bytes(text: string): string {
  return text === '' ? "''" : `X'${Buffer.from(text, 'utf8').toString('hex')}'`;
}

/**
 * A text as a literal, for columns of any character set. A literal takes the column's collation; an
 * expression such as CONVERT does not, and then the whole table is read and locked instead of a row.
 */
export function text(value: string): string {
  return `_utf8mb4 ${bytes(value)}`;
}

/** Characters that mean the same in every character set and every SQL mode. */
export const plainText = /^[\x20-\x5b\x5d-\x7e]*$/;

/** A {@link plainText} as an ordinary literal, with the character set and collation of the connection. */
export function plainLiteral(value: string): string {
  return `'${value.replaceAll("'", "''")}'`;
}

/** Hexadecimal digits as bytes. */
export function hexBytes(hex: string): string {
  return `X'${hex}'`;
}

/** An integer that this code made or checked. */
export function integer(value: number | bigint): string {
  return BigInt(value).toString();
}
