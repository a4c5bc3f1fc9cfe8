/** Values as JSON can carry them. Only for showing: nothing is read back from it. */

/** Big integers as decimal text, bytes as base64, maps as pairs, sets as lists; undefined is left out. */
export function plainJson(value: unknown, space?: number): string {
  return JSON.stringify(value, (_name, member: unknown) => plain(member), space);
}

function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString();
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (value instanceof Map || value instanceof Set) return [...value];
  return value;
}
