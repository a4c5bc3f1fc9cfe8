// The command line of a suite of scenarios, checked before anything starts.
import { parseArgs } from 'node:util';
import { whole } from './options.mjs';

const usage = (suite) => `npm run bench -- ${suite} [options]
  --only <a,b>    only these scenarios or rows (bases always run)
  --rounds <n>    rounds or runs per row, instead of each scenario's own number
  --cycles <n>    locks: names in the scenario "cycles", default 100000
  --rtt <ms>      SQL: round trip added by the proxy, even; default 2; 0: loopback only
  --quick         fewer rows and rounds: does it run, and roughly how does it stand?
  --write         store results/<date>-${suite}.json and renew docs/bench-${suite}.md`;

/** Returns the options, or undefined after having printed what is wrong (exit code 2). */
export function readSuiteOptions(suite, args, names) {
  try {
    return checked(parsed(args), names);
  } catch (error) {
    process.stderr.write(`${error.message}\n\n${usage(suite)}\nNames: ${names.join(' ')}\n`);
    process.exitCode = 2;
    return undefined;
  }
}

function parsed(args) {
  const options = {
    only: { type: 'string' },
    rounds: { type: 'string' },
    cycles: { type: 'string', default: '100000' },
    rtt: { type: 'string', default: '2' },
    quick: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  };
  return parseArgs({ args, options, strict: true, allowPositionals: false }).values;
}

function checked({ quick, write, ...values }, names) {
  const only = values.only?.split(',');
  for (const name of only ?? []) {
    if (!names.includes(name)) throw new Error(`--only: there is no "${name}"`);
  }
  const rttMs = whole('--rtt', values.rtt, 0);
  if (rttMs % 2 !== 0) throw new Error('--rtt must be even: half of it is added each way');
  if (write && (quick || only !== undefined)) throw new Error('--write wants a full run');
  const rounds = values.rounds === undefined ? undefined : whole('--rounds', values.rounds, 1);
  return { only, rounds, rttMs, cycles: whole('--cycles', values.cycles, 1_000), quick, write };
}
