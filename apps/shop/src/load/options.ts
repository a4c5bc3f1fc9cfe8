/** Options of `npm run load`, checked before anything starts. */
import { parseArgs } from 'node:util';

/** How the load is driven. */
export interface LoadOptions {
  /** Requests a second, one step each. */
  readonly rates: readonly number[];
  readonly stepS: number;
  readonly databases: readonly string[];
  /** Writes the table and the chart into the documents. */
  readonly write: boolean;
}

export const help = `npm run load -- [options]

  --rates 500,1000,…    requests a second, one step each (default 500,1000,2000,3000,4000,5000,7500,10000:
                        the last two find the ceiling where 5,000 a second are no load)
  --seconds N           length of a step, 1 to 60 (default 5)
  --databases a,b       postgres, mariadb (default: both; mariadb needs its server installed)
  --quick               500, 2000 and 5000 for 2 seconds each
  --write               write docs/load.md and docs/load.svg
`;

const quickRates = '500,2000,5000';
const allRates = '500,1000,2000,3000,4000,5000,7500,10000';

/** Undefined when help was asked for. @throws RangeError naming the option */
export function readOptions(args: readonly string[]): LoadOptions | undefined {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rates: { type: 'string' },
      seconds: { type: 'string' },
      databases: { type: 'string' },
      quick: { type: 'boolean' },
      write: { type: 'boolean' },
      help: { type: 'boolean' },
    },
  });
  if (values.help) return undefined;
  const { quick = false, write = false } = values;
  const rates = list(values.rates ?? (quick ? quickRates : allRates));
  for (const rate of rates) integer('--rates', rate, 1, 20_000);
  const databases = (values.databases ?? 'postgres,mariadb').split(',');
  for (const name of databases) {
    if (name !== 'postgres' && name !== 'mariadb') {
      throw new RangeError(`--databases must be postgres or mariadb; got "${name}"`);
    }
  }
  const seconds = values.seconds ?? (quick ? '2' : '5');
  return {
    rates: rates.map(Number),
    stepS: integer('--seconds', seconds, 1, 60),
    databases,
    write,
  };
}

function list(text: string): readonly string[] {
  return text.split(',');
}

function integer(option: string, text: string, min: number, max: number): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw new RangeError(`${option} must be integers from ${min} to ${max}; got "${text}"`);
}
