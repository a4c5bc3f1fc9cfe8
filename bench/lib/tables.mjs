// Tables of any suite: rows of cells, the goals set for them, and where ours are not the best.

/** What is compared: a plain number, or the median of ratios. */
const numberOf = (cell) => cell?.median ?? cell;

function shown(cell, digits = 2) {
  if (cell === undefined || cell === null || Number.isNaN(cell)) return '';
  if (typeof cell === 'string') return cell;
  if (typeof cell === 'number') return plain(cell, digits);
  const { median, low, high } = cell;
  return `${plain(median, digits)} (${plain(low, digits)}–${plain(high, digits)})`;
}

function plain(value, digits) {
  if (value !== 0 && Math.abs(value) < 0.1) return String(Number(value.toPrecision(2)));
  return value >= 1_000 ? Math.round(value).toLocaleString('en-US') : value.toFixed(digits);
}

/** Aligned as the formatter would do it, so that a renewed page passes its check. */
function markdown(head, rows) {
  const widths = head.map((_, i) => Math.max(3, ...[head, ...rows].map((row) => row[i].length)));
  const line = (cells) => `| ${cells.map((cell, i) => cell.padEnd(widths[i])).join(' | ')} |`;
  return [head, widths.map((width) => '-'.repeat(width)), ...rows].map(line).join('\n');
}

/** A table: `{title, columns: [{key, label, digits, better}], rows: [{id, label, values}]}`. */
export function tableText({ columns, rows, first = 'variant' }) {
  return markdown(
    [first, ...columns.map(({ label }) => label)],
    rows.map(({ label, values, failures }) => [
      `${label}${failureNote(failures)}`,
      ...columns.map(({ key, digits }) => shown(values[key], digits)),
    ]),
  );
}

function failureNote(failures = {}) {
  const notes = Object.entries(failures).map(([kind, count]) => `${count} × ${kind}`);
  return notes.length === 0 ? '' : ` (${notes.join(', ')})`;
}

/** Goals of the tables that were measured: `{what, asked, got, met}` each. */
export function judged(goals, tables) {
  return goals.flatMap(({ table, row, key, atMost, atLeast, what }) => {
    const values = tables.find(({ id }) => id === table)?.rows.find(({ id }) => id === row)?.values;
    const got = numberOf(values?.[key]);
    if (got === undefined || got === null || Number.isNaN(got)) return [];
    const met = atMost === undefined ? got >= atLeast : got <= atMost;
    const asked = atMost === undefined ? `≥ ${atLeast}` : `≤ ${atMost}`;
    return [{ what, asked, got, met }];
  });
}

/** The goals as a table. */
export function goalText(goals) {
  if (goals.length === 0) return 'No goal was measured.';
  return markdown(
    ['goal', 'asked', 'measured', ''],
    goals.map(({ what, asked, got, met }) => [
      what,
      asked,
      plain(got, 2),
      met ? 'met' : '**missed**',
    ]),
  );
}

/** One line per figure of ours that another row of its table beats. */
export function losing(tables) {
  const lines = tables.flatMap(({ title, columns, rows }) =>
    columns.flatMap((column) => losingIn(title, column, rows)),
  );
  return lines.length === 0 ? 'None in this run.' : lines.join('\n');
}

function losingIn(title, { key, label, better, digits }, rows) {
  if (better === undefined) return [];
  // A lock of one process only, or an empty process, is a bound, not a choice.
  const others = rows.filter(
    ({ ours, bound, values }) => !ours && !bound && Number.isFinite(numberOf(values[key])),
  );
  if (others.length === 0) return [];
  const sign = better === 'less' ? 1 : -1;
  const best = others.reduce((a, b) =>
    sign * numberOf(a.values[key]) <= sign * numberOf(b.values[key]) ? a : b,
  );
  const limit = numberOf(best.values[key]);
  return rows
    .filter(({ ours, values }) => ours && sign * numberOf(values[key]) > sign * limit)
    .map((row) => {
      const own = plain(numberOf(row.values[key]), digits ?? 2);
      return `- ${title}, ${row.label}, ${label}: ${own}; ${best.label}: ${plain(limit, digits ?? 2)}.`;
    });
}

/** Rows of an interleaved run as rows of a table: the base is 1 everywhere. */
export function ratioRows([base, ...variants], more = () => ({})) {
  const ones = Object.fromEntries(Object.keys(base.plain).map((metric) => [metric, 1]));
  return [{ ...base, ratios: ones }, ...variants].map(({ ratios, ...row }) => ({
    ...row,
    ours: row.id.startsWith('turngate'),
    values: { ...ratios, ...more(row.id) },
  }));
}
