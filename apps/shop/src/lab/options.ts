/** Command line of the lab. Anything it does not know is refused before anything is started. */
import { parseArgs } from 'node:util';
import type { Contest } from './contest.ts';
import { implementationIds } from './implementations.ts';
import type { Plan } from './matrix.ts';
import { scenarioIds, scenarios } from './scenarios.ts';
import { stormIds } from './storms/index.ts';

export interface LabOptions extends Plan {
  readonly jsonFile: string;
  readonly htmlFile: string;
}

/** The user's mistake, with a message for the user. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

const lineCharsMax = 88;
const contenderIds = [
  ...new Set(scenarioIds.flatMap((id) => Object.keys(scenarios[id]?.contenders ?? {}))),
];
const ways = [...new Set([...implementationIds, ...contenderIds])];

export const usage = `Usage: npm run lab -- [options]

Runs wrong implementations and the right one under the same storms, audits the database after each,
and prints what was lost and which law was broken.

  --storm <a,b>    these storms
      of paying an order: ${wrapped(stormIds)}
      of the trade: ${wrapped(scenarioIds)}
  --only <a,b>     these ways to go through them
      paying an order: ${wrapped(implementationIds)}
      in the trade: ${wrapped(contenderIds)}
  --quick          fewer orders per storm
  --seed <n>       seed of waits, pauses and trips to the database (default 1)
  --json <file>    default lab-report/lab.json
  --html <file>    default lab-report/lab.html
  --help

DATABASE_URL names a PostgreSQL to use (in a schema of its own, dropped at the end); without it an
embedded PostgreSQL is started. Exit code: 0 everything as the theory says; 1 a cell is not;
2 wrong usage; 130 interrupted.`;

const seedMax = 2 ** 31 - 1;

/** Undefined: help was asked for. @throws UsageError */
export function parseOptions(args: readonly string[]): LabOptions | undefined {
  const values = parse(args);
  if (values.help) return undefined;
  const storms = chosen('--storm', values.storm, [...stormIds, ...scenarioIds]);
  const only = chosen('--only', values.only, ways);
  const implementations = implementationIds.filter((id) => only.has(id));
  const payments = stormIds.filter((id) => storms.has(id));
  const contests = contestsOf(storms, only);
  if (implementations.length * payments.length + contests.length === 0) {
    throw new UsageError('--storm and --only leave nothing to run');
  }
  return {
    implementations,
    storms: payments,
    contests,
    quick: values.quick ?? false,
    seed: parseSeed(values.seed ?? '1'),
    jsonFile: fileOf('--json', values.json ?? 'lab-report/lab.json'),
    htmlFile: fileOf('--html', values.html ?? 'lab-report/lab.html'),
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: false,
      options: {
        only: { type: 'string' },
        storm: { type: 'string' },
        quick: { type: 'boolean' },
        seed: { type: 'string' },
        json: { type: 'string' },
        html: { type: 'string' },
        help: { type: 'boolean', short: 'h' },
      },
    }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

/** The names given, or all. */
function chosen(
  option: string,
  value: string | undefined,
  known: readonly string[],
): ReadonlySet<string> {
  if (value === undefined) return new Set(known);
  const wanted = value.split(',').map((name) => name.trim());
  const unknown = wanted.filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    const names = unknown.map((name) => JSON.stringify(name)).join(', ');
    throw new UsageError(`${option} does not know ${names}; it knows ${known.join(', ')}`);
  }
  return new Set(wanted);
}

/** In the order of the report, whatever the order on the command line. */
function contestsOf(storms: ReadonlySet<string>, only: ReadonlySet<string>): Contest[] {
  return scenarioIds
    .filter((scenario) => storms.has(scenario))
    .flatMap((scenario) =>
      Object.keys(scenarios[scenario]?.contenders ?? {})
        .filter((contender) => only.has(contender))
        .map((contender) => ({ scenario, contender })),
    );
}

function parseSeed(text: string): number {
  const seed = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (seed <= seedMax) return seed;
  throw new UsageError(`--seed is an integer from 0 to ${seedMax}, not ${JSON.stringify(text)}`);
}

function fileOf(option: string, name: string): string {
  if (name !== '') return name;
  throw new UsageError(`${option} needs the name of a file`);
}

function wrapped(names: readonly string[]): string {
  const lines: string[] = [];
  for (const name of names) {
    const last = lines.at(-1);
    if (last === undefined || last.length + name.length > lineCharsMax) lines.push(name);
    else lines[lines.length - 1] = `${last}, ${name}`;
  }
  return lines.map((line) => `\n        ${line}`).join(',');
}
