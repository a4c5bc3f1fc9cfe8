/** The scenarios in the HTML report: each with its ways through, and the laws they broke. */
import { breachesInWords, partsOf } from '../contest.ts';
import type { ContestResult } from '../contests.ts';
import { definitions, escapeHtml } from './escape.ts';
import type { LabResult } from './result.ts';

export function tradePart({ contests }: LabResult): string {
  if (contests.length === 0) return '';
  const ids = [...new Set(contests.map(({ scenario }) => scenario))];
  const parts = ids.map((id) => scenarioPart(contests.filter(({ scenario }) => scenario === id)));
  return `<h2>The trade</h2>
<p>Storms around the payment, on three node processes with a network trip to the database. Every way
works on the shop’s own tables, without the constraints that would turn its mistake into an error; the
same audit counts for all.</p>
${parts.join('\n')}`;
}

function scenarioPart(contests: readonly ContestResult[]): string {
  const [first] = contests;
  if (first === undefined) return '';
  const { scenario } = partsOf(first);
  const laws = Object.values(scenario.laws);
  return `<h3>${escapeHtml(scenario.title)}</h3>
<p>${escapeHtml(scenario.story)}</p>
<div class="wide"><table>
<thead><tr><th scope="col">way</th><th scope="col">broken</th><th scope="col">why</th></tr></thead>
<tbody>
${contests.map(contestRow).join('\n')}
</tbody>
</table></div>
${definitions(laws.map(({ many, meaning }) => [many, meaning]))}`;
}

function contestRow(contest: ContestResult): string {
  const { scenario, contender } = partsOf(contest);
  const { findings, mismatch } = contest;
  const words = findings ? breachesInWords(scenario, findings.breaches) : 'the storm broke';
  const kind = words === '' ? 'clean' : 'lost';
  const odd = mismatch === undefined ? '' : ' odd';
  const name = `<b>${escapeHtml(contender.title)}</b><small>${escapeHtml(contender.idea)}</small>`;
  return `<tr><th scope="row">${name}</th><td class="${kind}${odd}"><b>${escapeHtml(words || 'nothing broken')}</b></td><td>${escapeHtml(contender.why)}</td></tr>`;
}
