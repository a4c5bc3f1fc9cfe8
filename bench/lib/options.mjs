// The command line, checked before anything starts.
import { parseArgs } from 'node:util';

const USAGE = `npm run bench -- [options]
  --rounds <n>    rounds per table, default 11
  --n <n>         calls per slice, default 1000
  --only <a,b>    only these scenarios or variants (the base always runs)
  --rtt <ms>      round trip added by the proxy, even; default 2; 0: loopback only
  --quick         3 rounds of 200 calls: does it run at all?
  --write         store results/<date>.json and renew the tables in README.md`;

const ROUNDS_MIN_TO_WRITE = 9;

/** Returns the options, or undefined after having printed what is wrong (exit code 2). */
export function readOptions(args, knownNames) {
  try {
    return checked(parsed(args), knownNames);
  } catch (error) {
    process.stderr.write(`${error.message}\n\n${USAGE}\nNames: ${knownNames.join(' ')}\n`);
    process.exitCode = 2;
    return undefined;
  }
}

function parsed(args) {
  const options = {
    rounds: { type: 'string' },
    n: { type: 'string' },
    only: { type: 'string' },
    rtt: { type: 'string' },
    quick: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  };
  return parseArgs({ args, options, strict: true, allowPositionals: false }).values;
}

function checked({ quick, write, ...values }, knownNames) {
  const rounds = whole('--rounds', values.rounds ?? (quick ? '3' : '11'), 1);
  const calls = whole('--n', values.n ?? (quick ? '200' : '1000'), 100);
  const rttMs = whole('--rtt', values.rtt ?? '2', 0);
  if (rttMs % 2 !== 0) throw new Error('--rtt must be even: half of it is added each way');
  const only = values.only?.split(',');
  for (const name of only ?? []) {
    if (!knownNames.includes(name)) throw new Error(`--only: there is no "${name}"`);
  }
  if (write && (quick || only || rttMs !== 2 || rounds < ROUNDS_MIN_TO_WRITE)) {
    throw new Error(`--write wants everything, --rtt 2 and ${ROUNDS_MIN_TO_WRITE} rounds or more`);
  }
  return { rounds, calls, rttMs, only, write };
}

/** A whole number of the command line. */
export function whole(name, text, min) {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= min) return value;
  throw new Error(`${name} must be a whole number from ${min}; got "${text}"`);
}
