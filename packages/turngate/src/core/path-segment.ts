/** Names as one segment of a path or key: any text in, only safe characters out, one to one. */

/** Percent-encodes every byte but letters, digits, `-` and `_`. */
export function pathSegment(text: string): string {
  if (/^[A-Za-z0-9_-]*$/.test(text)) return text;
  let segment = '';
  for (const byte of Buffer.from(text)) {
    const character = String.fromCharCode(byte);
    segment += /[A-Za-z0-9_-]/.test(character)
      ? character
      : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return segment;
}

/** The text behind a segment. */
export function textOfSegment(segment: string): string {
  return decodeURIComponent(segment);
}
