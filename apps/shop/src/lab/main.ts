/**
 * `npm run lab`: wrong implementations and the right one under the same storms. The table goes to
 * standard output, progress to standard error; see `--help`.
 */
import { type LabOptions, parseOptions, UsageError, usage } from './options.ts';
import { mismatches, seconds } from './report/result.ts';
import { tableReport } from './report/table.ts';
import { runLab, writeReports } from './run.ts';

const exitCodes = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

async function main(args: readonly string[]): Promise<number> {
  let options: LabOptions | undefined;
  try {
    options = parseOptions(args);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    console.error(`lab: ${error.message}\n\n${usage}`);
    return 2;
  }
  if (options !== undefined) return await interruptible(options);
  console.log(usage);
  return 0;
}

/** Stops everything on Ctrl-C and its like, then gives the customary exit code. */
async function interruptible(options: LabOptions): Promise<number> {
  const controller = new AbortController();
  let exitCode: number | undefined;
  const onSignal = (name: NodeJS.Signals): void => {
    exitCode ??= exitCodes[name as keyof typeof exitCodes];
    controller.abort(new Error(`interrupted by ${name}`));
  };
  for (const name of Object.keys(exitCodes)) process.on(name, onSignal);
  try {
    return await runAndReport(options, controller.signal);
  } catch (error) {
    console.error(`lab: ${error instanceof Error ? error.message : String(error)}`);
    return exitCode ?? 1;
  } finally {
    for (const name of Object.keys(exitCodes)) process.off(name, onSignal);
  }
}

async function runAndReport(options: LabOptions, signal: AbortSignal): Promise<number> {
  const startMonoMs = performance.now();
  const say = (text: string): void =>
    console.error(`lab: ${seconds(performance.now() - startMonoMs).padStart(5)} s  ${text}`);
  const databaseUrl = process.env['DATABASE_URL'];
  const result = await runLab({ options, databaseUrl, signal, say });
  await writeReports(result, options);
  console.log(tableReport(result));
  say(`wrote ${options.jsonFile} and ${options.htmlFile}`);
  return mismatches(result).length === 0 ? 0 : 1;
}

process.exitCode = await main(process.argv.slice(2));
