/** The picture: a heat map of implementation × storm, with a bar of the total beside each row. */
import { lossesInWords, totalLosses } from '../losses.ts';
import type { CellResult } from '../matrix.ts';
import { storms } from '../storms/index.ts';
import { escapeHtml } from './escape.ts';
import { cellOf, describe, type LabResult, lossesOf } from './result.ts';

const size = { label: 230, cell: 86, row: 44, head: 64, bar: 190, gap: 4 };
/** Losses from which on a cell is as red as it gets; the scale is logarithmic. */
const reddest = 200;

export function picture(result: LabResult): string {
  const { plan } = result;
  const gridWidth = plan.storms.length * size.cell;
  const width = size.label + gridWidth + size.bar;
  const height = size.head + plan.implementations.length * size.row;
  const totalMax = Math.max(...plan.implementations.map((id) => totalLosses(lossesOf(result, id))));
  const heads = plan.storms.map((id, column) => headText(storms[id].title, column));
  const rows = plan.implementations.map((id, row) => {
    const y = size.head + row * size.row;
    const cells = plan.storms.map((storm, column) =>
      cellBox(cellOf(result, id, storm), size.label + column * size.cell, y),
    );
    const total = totalLosses(lossesOf(result, id));
    return [rowText(describe(id).title, y), ...cells, totalBar(total, totalMax, gridWidth, y)];
  });
  return `<svg viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="picture-title">
<title id="picture-title">Losses of each implementation under each storm; the table below says the same in words</title>
${[...heads, ...rows.flat()].join('\n')}
</svg>`;
}

function headText(title: string, column: number): string {
  const x = size.label + (column + 0.5) * size.cell;
  const lines = title.split(', ');
  const spans = lines.map(
    (line, i) =>
      `<tspan x="${x}" y="${size.head - 12 - (lines.length - 1 - i) * 17}">${escapeHtml(line)}</tspan>`,
  );
  return `<text class="head">${spans.join('')}</text>`;
}

function rowText(title: string, y: number): string {
  return `<text class="row" x="${size.label - 12}" y="${y + size.row / 2}">${escapeHtml(title)}</text>`;
}

function cellBox(cell: CellResult, x: number, y: number): string {
  const lost = cell.report === undefined ? undefined : totalLosses(cell.report.losses);
  const words =
    cell.report === undefined ? 'the storm broke' : lossesInWords(cell.report.losses) || 'no loss';
  const heat = lost === undefined ? 0 : Math.min(1, Math.log1p(lost) / Math.log1p(reddest));
  const kind = lost === undefined ? 'broken' : lost === 0 ? 'clean' : 'lost';
  const style = kind === 'lost' ? ` style="--heat:${(25 + heat * 75).toFixed(0)}%"` : '';
  const box = `x="${x + size.gap / 2}" y="${y + size.gap / 2}" width="${size.cell - size.gap}" height="${size.row - size.gap}"`;
  const mark = cell.mismatch === undefined ? '' : ' odd';
  const text = lost === undefined ? '?' : lost === 0 ? '✓' : String(lost);
  const title = `${describe(cell.implementation).title} × ${storms[cell.storm].title}: ${words}`;
  return `<g><title>${escapeHtml(title)}</title><rect class="${kind}${mark}"${style} ${box} rx="5"/><text class="number ${kind}" x="${x + size.cell / 2}" y="${y + size.row / 2}">${text}</text></g>`;
}

function totalBar(total: number, totalMax: number, gridWidth: number, y: number): string {
  const x = size.label + gridWidth + 12;
  const lengthMax = size.bar - 70;
  const length = totalMax === 0 ? 0 : Math.round((total / totalMax) * lengthMax);
  const bar = `<rect class="bar" x="${x}" y="${y + size.row / 2 - 7}" width="${length}" height="14" rx="3"/>`;
  return `${bar}<text class="total" x="${x + length + 8}" y="${y + size.row / 2}">${total}</text>`;
}
