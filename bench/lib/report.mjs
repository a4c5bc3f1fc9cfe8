// Results as text for the terminal and as Markdown between the markers of the README.

/** How each network is called in tables. */
export const NETWORKS = { loopback: 'loopback', rtt: '+2 ms round trip' };

const ratio = ({ median, low, high }) =>
  `${median.toFixed(2)} (${low.toFixed(2)}–${high.toFixed(2)})`;
const short = ({ median }) => median.toFixed(2);

/** One table per scenario and network: ratios to the base. */
export function scenarioTable({ rows, network }) {
  return table(
    ['variant', 'calls/s ÷ bare', 'p50', 'p99', 'goal'],
    rows.slice(1).map((row) => {
      const { opsPerSecond, p50Us, p99Us } = row.ratios;
      const label = `${row.label}${failureNote(row)}`;
      return [label, ratio(opsPerSecond), short(p50Us), short(p99Us), goalCell(row, network)];
    }),
  );
}

/** Aligned, as the formatter would do it, so that a renewed page passes its check. */
function table(head, rows) {
  const widths = head.map((_, i) => Math.max(...[head, ...rows].map((cells) => cells[i].length)));
  const line = (cells) => `| ${cells.map((cell, i) => cell.padEnd(widths[i])).join(' | ')} |`;
  const rule = widths.map((width) => '-'.repeat(width));
  return [head, rule, ...rows].map(line).join('\n');
}

function goalCell(row, network) {
  const goal = row.goals?.[network];
  if (goal === undefined) return '';
  return `≥ ${goal.toFixed(2)} ${row.ratios.opsPerSecond.median >= goal ? 'met' : '**missed**'}`;
}

function failureNote({ failures }) {
  const notes = Object.entries(failures).map(([kind, count]) => `${count} × ${kind}`);
  return notes.length === 0 ? '' : ` (${notes.join(', ')})`;
}

/** Exact counts: trips / statements. */
export function counterTable(rows) {
  const cost = ({ trips, statements }) => `${trips} / ${statements}`;
  return table(
    ['variant', 'first call', 'repeat', '20 at once', 'answered', 'results'],
    rows.map(({ label, first, repeat, crowd }) => {
      const answered = `${crowd.answered} of ${crowd.callers}`;
      return [label, cost(first), cost(repeat), cost(crowd), answered, String(crowd.results)];
    }),
  );
}

/** Every row of Turngate that is slower than the bare transaction, or than the best by hand. */
export function losingRows(tables) {
  const lines = [];
  for (const { title, rows, network } of tables) {
    const ofOthers = rows.filter(({ id, ratios }) => ratios && !id.startsWith('turngate'));
    const best = Math.max(...ofOthers.map(({ ratios }) => ratios.opsPerSecond.median));
    for (const { id, label, ratios } of rows) {
      if (!id.startsWith('turngate')) continue;
      const { opsPerSecond, p99Us } = ratios;
      const what = [];
      if (opsPerSecond.median < 1) what.push(`${short(opsPerSecond)} of the bare calls/s`);
      if (opsPerSecond.median < best) what.push(`best other row ${best.toFixed(2)}`);
      if (p99Us.median > 1) what.push(`p99 × ${short(p99Us)}`);
      if (what.length === 0) continue;
      lines.push(`- ${title}, ${NETWORKS[network]}, ${label}:\n  ${what.join(', ')}.`);
    }
  }
  return lines.length === 0 ? 'None in this run.' : lines.join('\n');
}

/** Replaces what stands between `<!-- name:begin -->` and `<!-- name:end -->`. */
export function withSection(page, name, text) {
  const begin = `<!-- ${name}:begin -->`;
  const end = `<!-- ${name}:end -->`;
  const from = page.indexOf(begin);
  const to = page.indexOf(end);
  if (from < 0 || to < from) throw new Error(`no markers "${name}" in the page`);
  return `${page.slice(0, from + begin.length)}\n${text}\n${page.slice(to)}`;
}
