/** The run as one HTML file that needs nothing else: no script, no font, no request. */
import { lossesInWords, lossKinds, lossWords } from '../losses.ts';
import type { CellResult } from '../matrix.ts';
import { storms } from '../storms/index.ts';
import { definitions, escapeHtml } from './escape.ts';
import { styles } from './html-styles.ts';
import { picture } from './picture.ts';
import { cellOf, describe, type LabResult, mismatches, playedCount, seconds } from './result.ts';
import { tradePart } from './trade.ts';

export function htmlReport(result: LabResult): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Turngate lab: what each way loses</title>
<style>${styles}</style>
</head>
<body>
<main>
<h1>What each way loses</h1>
${verdict(result)}
${paymentPart(result)}
${tradePart(result)}
${footer(result)}
</main>
</body>
</html>
`;
}

function verdict(result: LabResult): string {
  const bad = mismatches(result);
  const count = playedCount(result);
  if (bad.length === 0) {
    return `<p class="verdict good">All ${count} cells are as the theory says.</p>`;
  }
  const items = bad.map(
    ({ way, storm, why }) =>
      `<li><b>${escapeHtml(`${way} × ${storm}`)}</b> ${escapeHtml(why)}</li>`,
  );
  return `<div class="verdict bad"><p>${bad.length} of ${count} cells are not as the theory says:</p><ul>${items.join('')}</ul></div>`;
}

function paymentPart(result: LabResult): string {
  if (result.cells.length === 0) return '';
  return `<p>The same storms against ${result.plan.implementations.length} implementations of “pay an order”,
on two server processes and one PostgreSQL. After each storm the database is counted: numbers are
losses found, ✓ is none.</p>
<div class="wide">${picture(result)}</div>
<p class="note">Colour grows with the logarithm of the losses; bars are totals.</p>
<h2>What was lost, and why</h2>
<div class="wide">${wordTable(result)}</div>
<h2>The implementations</h2>
${definitions(result.plan.implementations.map((id) => [describe(id).title, describe(id).idea]))}
<h2>The storms</h2>
${definitions(result.plan.storms.map((id) => [storms[id].title, storms[id].story]))}
<h2>What counts as a loss</h2>
${definitions(lossKinds.map((kind) => [lossWords[kind].many, lossWords[kind].meaning]))}`;
}

function wordTable(result: LabResult): string {
  const { plan } = result;
  const heads = plan.storms.map((id) => `<th scope="col">${escapeHtml(storms[id].title)}</th>`);
  const rows = plan.implementations.map((id) => {
    const cells = plan.storms.map((storm) => wordCell(cellOf(result, id, storm)));
    return `<tr><th scope="row">${escapeHtml(describe(id).title)}</th>${cells.join('')}</tr>`;
  });
  return `<table>
<thead><tr><td></td>${heads.join('')}</tr></thead>
<tbody>
${rows.join('\n')}
</tbody>
</table>`;
}

function wordCell({ report, theory, mismatch }: CellResult): string {
  const words = report === undefined ? 'the storm broke' : lossesInWords(report.losses);
  const kind = words === '' ? 'clean' : 'lost';
  const odd = mismatch === undefined ? '' : ' odd';
  return `<td class="${kind}${odd}"><b>${escapeHtml(words || 'nothing lost')}</b><small>${escapeHtml(theory.why)}</small></td>`;
}

function footer(result: LabResult): string {
  const { plan, startedAt, durationMs, nodeVersion, postgresVersion } = result;
  const how = `${plan.quick ? 'Quick run' : 'Full run'}, seed ${plan.seed}`;
  const text = `${how}; ${startedAt.toISOString()}; ${seconds(durationMs)} s; PostgreSQL ${postgresVersion}; Node ${nodeVersion}`;
  return `<footer>${escapeHtml(text)}</footer>`;
}
