/**
 * Names for GET_LOCK: server-wide, at most 64 characters long and, on MySQL, without case. So they are
 * lower-case hashes of fixed length, behind a hash of the schema.
 */
import { hash } from 'node:crypto';
import type { Link } from './driver.ts';

const prefixes = new Map<string, string>();
const prefixesMax = 1_000;

/**
 * The name as SQL. The client knows its schema; where it does not, the server puts the same in front.
 *
 * @param hex what is locked, as a hash
 */
export function userLock({ database }: Pick<Link, 'database'>, kind: string, hex: string): string {
  const rest = `${kind}${hex.slice(0, 40)}`;
  if (database === undefined) {
    return `CONCAT(LEFT(SHA2(LOWER(DATABASE()), 256), 12), '${rest}')`;
  }
  let prefix = prefixes.get(database);
  if (prefix === undefined) {
    if (prefixes.size >= prefixesMax) prefixes.clear();
    prefix = hash('sha256', database.toLowerCase(), 'hex').slice(0, 12);
    prefixes.set(database, prefix);
  }
  return `'${prefix}${rest}'`;
}
