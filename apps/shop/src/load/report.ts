/** The load's figures as a table and a chart. */
import { cpus } from 'node:os';
import type { StepResult } from './generator.ts';
import { type SchemeName, schemeNames, schemeTexts } from './schemes.ts';

/** One step of one scheme. */
export interface Measured extends StepResult {
  readonly database: string;
  readonly scheme: SchemeName;
  readonly rate: number;
  /** Processor time of the server process, per answered request. */
  readonly cpuUs: number;
}

/** Compared with the four-statement transaction on the same database. */
export interface Ratio {
  readonly database: string;
  readonly scheme: SchemeName;
  readonly ceiling: number;
  readonly cpu: number;
}

/** Best delivered rate and best processor time, as ratios to the first scheme. */
export function ratiosOf(all: readonly Measured[]): readonly Ratio[] {
  const databases = [...new Set(all.map(({ database }) => database))];
  return databases.flatMap((database) => {
    const best = (scheme: SchemeName) => {
      const steps = all.filter((one) => one.database === database && one.scheme === scheme);
      return {
        ceiling: Math.max(...steps.map(({ perSecond }) => perSecond)),
        cpu: Math.min(...steps.map(({ cpuUs }) => cpuUs)),
      };
    };
    const base = best('unique-index');
    return schemeNames.map((scheme) => {
      const { ceiling, cpu } = best(scheme);
      return { database, scheme, ceiling: ceiling / base.ceiling, cpu: cpu / base.cpu };
    });
  });
}

/** The page. */
export function pageOf(all: readonly Measured[], date: string): string {
  const machine = `${cpus().length} cores, Node ${process.versions.node}; server, database and load on the same machine`;
  const rows = all.map((one) => {
    const codes = Object.entries(one.codes).map(([code, n]) => `${code} ${n}`);
    return `| ${one.database} | ${one.scheme} | ${one.rate} | ${Math.round(one.perSecond)} | ${one.p50Ms} | ${one.p90Ms} | ${one.p99Ms} | ${one.maxMs} | ${Math.round(one.cpuUs)} | ${codes.join(', ')} |`;
  });
  const ratios = ratiosOf(all).map(
    ({ database, scheme, ceiling, cpu }) =>
      `| ${database} | ${schemeTexts[scheme]} | ${ceiling.toFixed(2)} | ${cpu.toFixed(2)} |`,
  );
  return `# Load

Written by \`npm run load -- --write\` on ${date}: ${machine}. Payment callbacks, 20 % repeats, 64
connections, an open loop. No durable scheme is promised an absolute rate; compare the ratios.

![delivered against asked](load.svg)

| database | scheme | ceiling ÷ unique index | server CPU per request ÷ unique index |
| --- | --- | --- | --- |
${ratios.join('\n')}

| database | scheme | asked/s | delivered/s | p50 ms | p90 ms | p99 ms | max ms | CPU µs | answers |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
${rows.join('\n')}
`;
}

const colours: Readonly<Record<SchemeName, string>> = {
  'unique-index': '#888888',
  'unique-index+token': '#c07000',
  'state-machine': '#2060c0',
  guarded: '#108040',
};

/** Delivered against asked rate, one panel per database. */
export function chartOf(all: readonly Measured[]): string {
  const databases = [...new Set(all.map(({ database }) => database))];
  const most = Math.max(...all.map(({ rate }) => rate));
  const [width, height, left, top] = [380, 260, 50, 40];
  const x = (rate: number): number => left + (rate / most) * (width - left - 20);
  const y = (rate: number): number => top + (1 - Math.min(rate / most, 1)) * (height - top - 40);
  const panels = databases.map((database, i) => {
    const lines = schemeNames.map((scheme) => {
      const points = all
        .filter((one) => one.database === database && one.scheme === scheme)
        .map((one) => `${x(one.rate).toFixed(1)},${y(one.perSecond).toFixed(1)}`);
      return `<polyline fill="none" stroke="${colours[scheme]}" stroke-width="2" points="${points.join(' ')}"/>`;
    });
    const ideal = `<line stroke="#ccc" stroke-dasharray="4" x1="${x(0)}" y1="${y(0)}" x2="${x(most)}" y2="${y(most)}"/>`;
    const axis = `<text x="${left}" y="20">${database}: delivered a second against asked</text><text x="4" y="${y(most) + 4}">${most}</text><text x="${width - 50}" y="${height - 20}">${most}</text>`;
    return `<g transform="translate(${i * width},0)">${ideal}${lines.join('')}${axis}</g>`;
  });
  const legend = schemeNames.map(
    (scheme, i) =>
      `<text x="${50 + i * 180}" y="${height + 10}" fill="${colours[scheme]}">${scheme}</text>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width * databases.length}" height="${height + 20}" font-family="sans-serif" font-size="12"><title>Delivered against asked rate</title>${panels.join('')}${legend.join('')}</svg>\n`;
}
