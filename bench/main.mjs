// `npm run bench -- [suite] [options]`: which suite, then its own command line.
const SUITES = {
  async postgres(args) {
    const { runPostgresSuite } = await import('./suites/postgres.mjs');
    await runPostgresSuite(args);
  },
  async locks(args) {
    const { runSuite } = await import('./lib/run-suite.mjs');
    const { locks } = await import('./suites/locks.mjs');
    await runSuite(locks, args);
  },
  async idempotency(args) {
    const { runSuite } = await import('./lib/run-suite.mjs');
    const { idempotency } = await import('./suites/idempotency.mjs');
    await runSuite(idempotency, args);
  },
  async transactions(args) {
    const { runSuite } = await import('./lib/run-suite.mjs');
    const { transactions } = await import('./suites/transactions.mjs');
    await runSuite(transactions, args);
  },
};

/** `locks …` and `--suite locks …` mean the same; without either it is PostgreSQL. */
function suiteOf(args) {
  const [first, second, ...rest] = args;
  if (first === '--suite') return [second ?? '', rest];
  if (first !== undefined && !first.startsWith('-')) return [first, args.slice(1)];
  return ['postgres', args];
}

const [suite, rest] = suiteOf(process.argv.slice(2));
if (Object.hasOwn(SUITES, suite)) await SUITES[suite](rest);
else {
  process.stderr.write(`There is no suite "${suite}": ${Object.keys(SUITES).join(', ')}.\n`);
  process.exitCode = 2;
}
