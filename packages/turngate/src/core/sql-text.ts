/** Pieces of SQL that differ between the databases a feature runs on. Text only, no I/O. */

/** The server's own time in epoch milliseconds, at the moment the expression is evaluated. */
export const sqlNowMs = {
  postgres: "CAST(floor(date_part('epoch', clock_timestamp()) * 1000) AS bigint)",
  // Not from a session time zone, which repeats an hour each autumn.
  mysql: "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6)) DIV 1000)",
  sqlite: "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
} as const;

/** Appended to an INSERT: on a known key the listed columns are overwritten, nothing fails. */
export function sqlUpsert(
  dialect: keyof typeof sqlNowMs,
  keys: readonly string[],
  columns: readonly string[],
): string {
  if (dialect === 'mysql') {
    // VALUES(): understood by MySQL and MariaDB alike; a no-op assignment for "do nothing".
    const [first] = keys;
    const sets = columns.map((column) => `${column} = VALUES(${column})`);
    return `ON DUPLICATE KEY UPDATE ${sets.length > 0 ? sets.join(', ') : `${first} = ${first}`}`;
  }
  const sets = columns.map((column) => `${column} = excluded.${column}`).join(', ');
  return `ON CONFLICT (${keys.join(', ')}) DO ${sets === '' ? 'NOTHING' : `UPDATE SET ${sets}`}`;
}

const places = /'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\$(\d+)/g;

/** Rewrites `$1`, `$2`, … outside of quotes. */
export function rewritePlaces(statement: string, place: (index: number) => string): string {
  return statement.replace(places, (found, index: string | undefined) =>
    index === undefined ? found : place(Number(index)),
  );
}
