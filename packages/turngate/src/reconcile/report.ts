/** What a run says: as an object, as CSV, as a page. */
import type { Break } from './finding.ts';

/** A finished run. */
export interface Report {
  readonly channel: string;
  readonly date: string;
  /** Counts by code. */
  readonly counts: Readonly<Record<string, number>>;
  /** Sums by code and currency, in minor units. */
  readonly sums: Readonly<Record<string, Readonly<Record<string, bigint>>>>;
  readonly breaks: readonly Break[];
}

/** The report as JSON; amounts are texts, so that no reader makes floats of them. */
export function reportJson(report: Report): string {
  const asText = (_: string, value: unknown): unknown =>
    typeof value === 'bigint' ? value.toString() : value;
  return JSON.stringify(report, asText, 2);
}

/** The breaks as CSV, with a header line. */
export function reportCsv({ breaks }: Report): string {
  const rows = breaks.map(({ code, severity, kind, key, amountMinor, currency, detail }) =>
    [code, severity, kind, key, amountMinor.toString(), currency, detail].map(cell).join(','),
  );
  return ['code,severity,kind,key,amountMinor,currency,detail', ...rows, ''].join('\r\n');
}

/** The report as a page of its own, without scripts. */
export function reportHtml(report: Report): string {
  const { channel, date, counts, breaks } = report;
  const count = Object.entries(counts).map(([code, n]) => `<tr><td>${text(code)}<td>${n}`);
  const rows = breaks.map(
    ({ code, severity, kind, key, amountMinor, currency, detail }) =>
      `<tr><td>${code}<td>${severity}<td>${text(kind)}<td>${text(key)}<td>${amountMinor} ${text(currency)}<td>${text(detail)}`,
  );
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>Reconciliation ${text(channel)} ${text(date)}</title>
<h1>Reconciliation of ${text(channel)}, ${text(date)}</h1>
<table><tr><th>code<th>count${count.join('')}</table>
<h2>${breaks.length} breaks</h2>
<table><tr><th>code<th>severity<th>kind<th>key<th>minor units<th>detail${rows.join('')}</table></html>
`;
}

/** Quotes a cell; one that a spreadsheet would run as a formula is made a text. */
function cell(value: string): string {
  const safe = /^[=+\-@\t\r]/.test(value) && !/^-?\d+$/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function text(value: string): string {
  return value.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
