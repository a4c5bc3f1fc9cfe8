/** One run from start to clean-up, however it ends. */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { openDatabase } from './database.ts';
import { Fleet } from './fleet.ts';
import { lossesInWords } from './losses.ts';
import { type CellResult, runMatrix } from './matrix.ts';
import type { LabOptions } from './options.ts';
import { htmlReport } from './report/html.ts';
import { jsonReport } from './report/json.ts';
import type { LabResult } from './report/result.ts';
import { seconds } from './report/result.ts';

export interface RunParts {
  readonly options: LabOptions;
  readonly databaseUrl: string | undefined;
  readonly signal: AbortSignal;
  /** One line of progress. */
  say(text: string): void;
}

/** Rejects with the signal's reason when interrupted; all is stopped and removed either way. */
export async function runLab({ options, databaseUrl, signal, say }: RunParts): Promise<LabResult> {
  const startedAt = new Date();
  const startMonoMs = performance.now();
  say(databaseUrl ? 'connecting to DATABASE_URL' : 'starting an embedded PostgreSQL');
  const database = await openDatabase(databaseUrl);
  try {
    signal.throwIfAborted();
    const fleet = new Fleet(database.address);
    try {
      const onCell = (cell: CellResult, number: number, count: number): void =>
        say(`${number}/${count}  ${cellLine(cell)}`);
      const cells = await runMatrix({ plan: options, database, fleet, signal, onCell });
      return {
        plan: options,
        cells,
        startedAt,
        durationMs: Math.round(performance.now() - startMonoMs),
        nodeVersion: process.versions.node,
        postgresVersion: database.serverVersion,
      };
    } finally {
      await fleet.stop();
    }
  } finally {
    await database.close();
  }
}

export async function writeReports(result: LabResult, options: LabOptions): Promise<void> {
  await writeFileDeep(options.jsonFile, jsonReport(result));
  await writeFileDeep(options.htmlFile, htmlReport(result));
}

async function writeFileDeep(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, text);
}

function cellLine({ implementation, storm, report, mismatch, durationMs }: CellResult): string {
  const found = report === undefined ? 'broken' : lossesInWords(report.losses) || 'no loss';
  const mark = mismatch === undefined ? '' : '  NOT AS THEORY';
  return `${implementation} × ${storm}: ${found} (${seconds(durationMs)} s)${mark}`;
}
