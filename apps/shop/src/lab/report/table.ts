/** The table on the terminal: implementation × storm, and what was lost in each cell. */
import { breachesInWords, partsOf } from '../contest.ts';
import type { ContestResult } from '../contests.ts';
import { lossesInWords, lossKinds, lossWords } from '../losses.ts';
import type { CellResult } from '../matrix.ts';
import { storms } from '../storms/index.ts';
import {
  cellOf,
  describe,
  type LabResult,
  lossesOf,
  mismatches,
  playedCount,
  seconds,
} from './result.ts';

export function tableReport(result: LabResult): string {
  const parts = [...paymentLines(result), ...tradeLines(result), ...closing(result)];
  return parts.join('\n');
}

function paymentLines(result: LabResult): string[] {
  const { plan, cells } = result;
  if (cells.length === 0) return [];
  const head = ['', ...plan.storms.map((id) => storms[id].title)];
  const rows = plan.implementations.map((id) => [
    describe(id).title,
    ...plan.storms.map((storm) => cellText(cellOf(result, id, storm))),
  ]);
  return [grid(head, rows), legend(), '', ...lostLines(result), ''];
}

/** One block per scenario: who went through it, and which laws were broken how often. */
function tradeLines({ contests }: LabResult): string[] {
  const width = Math.max(...contests.map((contest) => partsOf(contest).contender.title.length));
  return contests.flatMap((contest, i) => {
    const { scenario, contender } = partsOf(contest);
    const first = contests[i - 1]?.scenario !== contest.scenario;
    const last = contests[i + 1]?.scenario !== contest.scenario;
    const line = `  ${contender.title.padEnd(width)}  ${contestText(contest)}`;
    return [...(first ? [scenario.title] : []), line, ...(last ? [''] : [])];
  });
}

function contestText(contest: ContestResult): string {
  const { findings, mismatch } = contest;
  const mark = mismatch === undefined ? '' : ' !';
  if (findings === undefined) return `broken${mark}`;
  return `${breachesInWords(partsOf(contest).scenario, findings.breaches) || 'ok'}${mark}`;
}

function mismatchLines(result: LabResult): string[] {
  return mismatches(result).map(
    ({ way, storm, why }) => `NOT AS THEORY  ${way} × ${storm}: ${why}`,
  );
}

function cellText({ report, mismatch }: CellResult): string {
  const mark = mismatch === undefined ? '' : ' !';
  if (report === undefined) return `broken${mark}`;
  const { losses } = report;
  const lost = lossKinds
    .filter((kind) => losses[kind] > 0)
    .map((kind) => `${lossWords[kind].letter}${losses[kind]}`);
  return `${lost.join(' ') || 'ok'}${mark}`;
}

function grid(head: readonly string[], rows: readonly (readonly string[])[]): string {
  // A title takes two lines at its comma or at its middle, so that nine storms fit side by side.
  const heads = head.map(twoLines);
  const upper = heads.map(([line]) => line);
  const lower = heads.map(([, line]) => line);
  const lines = [upper, lower, ...rows];
  const widths = head.map((_, column) =>
    Math.max(...lines.map((line) => line[column]?.length ?? 0)),
  );
  const render = (line: readonly string[]): string =>
    line
      .map((text, column) => text.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd();
  const rule = widths.map((width) => '─'.repeat(width)).join('  ');
  return [render(upper), render(lower), rule, ...rows.map(render)].join('\n');
}

function twoLines(title: string): [string, string] {
  const [first = '', second] = title.split(', ');
  return second === undefined ? ['', first] : [`${first},`, second];
}

function legend(): string {
  const entries = lossKinds.map((kind) => `${lossWords[kind].letter} ${lossWords[kind].many}`);
  return `\n${entries.join('; ')}; ! not as theory`;
}

function lostLines(result: LabResult): string[] {
  const width = Math.max(...result.plan.implementations.map((id) => describe(id).title.length));
  return result.plan.implementations.map((id) => {
    const lost = lossesInWords(lossesOf(result, id)) || 'nothing lost';
    const broken = result.cells.some((cell) => cell.implementation === id && !cell.report);
    return `${describe(id).title.padEnd(width)}  ${lost}${broken ? ', and not all counted' : ''}`;
  });
}

function closing(result: LabResult): string[] {
  const { plan, durationMs, postgresVersion, nodeVersion } = result;
  const how = `${plan.quick ? 'quick, ' : ''}seed ${plan.seed}`;
  const where = `PostgreSQL ${postgresVersion}, Node ${nodeVersion}`;
  const bad = mismatchLines(result);
  const count = playedCount(result);
  const verdict =
    bad.length === 0
      ? `${count} of ${count} cells are as the theory says`
      : `${bad.length} of ${count} cells are NOT as the theory says`;
  return [...bad, `${verdict} (${seconds(durationMs)} s; ${how}; ${where})`];
}
