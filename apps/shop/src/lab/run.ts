/** One run from start to clean-up, however it ends. */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { breachesInWords, partsOf } from './contest.ts';
import { type ContestResult, runContests } from './contests.ts';
import { type LabDatabase, openDatabase } from './database.ts';
import { startPaymentServers, startScenarioNodes } from './fleets.ts';
import { lossesInWords } from './losses.ts';
import { type CellResult, type Plan, runMatrix } from './matrix.ts';
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
    const progress = progressOf(options, say);
    const cells = await playPayments({ plan: options, database, signal, onCell: progress.cell });
    const contests = await playTrade({
      plan: options,
      database,
      signal,
      onContest: progress.contest,
    });
    return {
      plan: options,
      cells,
      contests,
      startedAt,
      durationMs: Math.round(performance.now() - startMonoMs),
      nodeVersion: process.versions.node,
      postgresVersion: database.serverVersion,
    };
  } finally {
    await database.close();
  }
}

interface Progress {
  cell(cell: CellResult): void;
  contest(result: ContestResult): void;
}

function progressOf(plan: Plan, say: (text: string) => void): Progress {
  const count = plan.implementations.length * plan.storms.length + plan.contests.length;
  let number = 0;
  const step = (line: string): void => say(`${++number}/${count}  ${line}`);
  return {
    cell: (cell) => step(cellLine(cell)),
    contest: (result) => step(contestLine(result)),
  };
}

interface PlayParts {
  readonly plan: Plan;
  readonly database: LabDatabase;
  readonly signal: AbortSignal;
}

async function playPayments(
  parts: PlayParts & { onCell: Progress['cell'] },
): Promise<CellResult[]> {
  const { plan, database, signal } = parts;
  if (plan.implementations.length * plan.storms.length === 0) return [];
  signal.throwIfAborted();
  const fleet = startPaymentServers(database.address);
  try {
    return await runMatrix({ ...parts, fleet });
  } finally {
    await fleet.stop();
  }
}

async function playTrade(
  parts: PlayParts & { onContest: Progress['contest'] },
): Promise<ContestResult[]> {
  const { plan, database, signal, onContest } = parts;
  const { contests, quick, seed } = plan;
  if (contests.length === 0) return [];
  signal.throwIfAborted();
  const nodes = startScenarioNodes(database.address, seed);
  try {
    const { pool } = database;
    return await runContests({ contests, quick, seed, pool, nodes, signal, onContest });
  } finally {
    await nodes.stop();
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

function contestLine(result: ContestResult): string {
  const { scenario, contender, findings, mismatch, durationMs } = result;
  const found =
    findings && (breachesInWords(partsOf(result).scenario, findings.breaches) || 'clean');
  const mark = mismatch === undefined ? '' : '  NOT AS THEORY';
  return `${contender} × ${scenario}: ${found ?? 'broken'} (${seconds(durationMs)} s)${mark}`;
}
