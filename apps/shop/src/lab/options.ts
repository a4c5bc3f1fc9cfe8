/** Command line of the lab. Anything it does not know is refused before anything is started. */
import { parseArgs } from 'node:util';
import { type ImplementationId, implementationIds } from './implementations.ts';
import type { Plan } from './matrix.ts';
import { type StormId, stormIds } from './storms/index.ts';

export interface LabOptions extends Plan {
  readonly jsonFile: string;
  readonly htmlFile: string;
}

/** The user's mistake, with a message for the user. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

export const usage = `Usage: npm run lab -- [options]

Runs wrong implementations of "pay an order" and the right one under the same storms, audits the
database after each, and prints what was lost.

  --only <a,b>     these implementations:${wrapped(implementationIds)}
  --storm <a,b>    these storms:${wrapped(stormIds)}
  --quick          fewer orders per storm
  --seed <n>       seed of waits and pauses (default 1)
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
  return {
    implementations: choose<ImplementationId>('--only', values.only, implementationIds),
    storms: choose<StormId>('--storm', values.storm, stormIds),
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

/** In the order of the report, whatever the order on the command line. */
function choose<Id extends string>(
  option: string,
  value: string | undefined,
  known: readonly Id[],
): Id[] {
  if (value === undefined) return [...known];
  const wanted = value.split(',').map((name) => name.trim());
  const unknown = wanted.filter((name) => !(known as readonly string[]).includes(name));
  if (unknown.length > 0) {
    const names = unknown.map((name) => JSON.stringify(name)).join(', ');
    throw new UsageError(`${option} does not know ${names}; it knows ${known.join(', ')}`);
  }
  return known.filter((name) => wanted.includes(name));
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
  const half = Math.ceil(names.length / 2);
  const lines = [names.slice(0, half), names.slice(half)].map((part) => part.join(', '));
  return `\n${lines.map((line) => `                     ${line}`).join(',\n')}`;
}
