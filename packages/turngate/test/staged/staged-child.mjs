// A process that places one order and is killed, or stopped, where the parent says.
// argv: database URL, provider URL, key, point ("write:3:before", "step:ship:after", "none").
import pg from 'pg';
import { createGate } from '../../dist/index.js';
import { postgres, postgresStaged } from '../../dist/stores/postgres/index.js';

const [url, providerUrl, key, point] = process.argv.slice(2);
const [what, where, when] = point.split(':');
const pool = new pg.Pool({ connectionString: url, max: 4 });
pool.on('error', () => undefined);
const verbs = 'open takeOver startStep finishStep dropStep transactStep end leave'.split(' ');
let written = 0;

function here(isHere) {
  if (isHere) process.kill(process.pid, 'SIGKILL');
}

const staged = new Proxy(postgresStaged(pool), {
  get(store, name) {
    const value = store[name];
    if (typeof value !== 'function') return value;
    return async (...args) => {
      const mine = verbs.includes(name) && what === 'write' && Number(where) === written++;
      here(mine && when === 'before');
      const answer = await value.apply(store, args);
      here(mine && when === 'after');
      return answer;
    };
  },
});

async function ask(name, providerKey) {
  here(what === 'step' && where === name && when === 'before');
  const response = await fetch(`${providerUrl}/${name}`, {
    method: 'POST',
    headers: { 'Idempotency-Key': providerKey },
  });
  const answer = await response.text();
  here(what === 'step' && where === name && when === 'after');
  return answer;
}

const gate = createGate({ records: postgres(pool), staged });
const place = gate.stagedOperation({
  name: 'child.place',
  key: (input) => input.key,
  leaseMs: 1_000,
  async run(_input, { step, uuid }) {
    process.stdout.write('running\n');
    const paid = await step('charge', (providerKey) => ask('charge', providerKey));
    await uuid();
    await step('book', { tx: true }, async (tx) => {
      await tx.query('INSERT INTO effect (line) VALUES ($1)', [key]);
    });
    const shipped = await step('ship', (providerKey) => ask('ship', providerKey));
    return { paid, shipped };
  },
});
try {
  await place({ key });
  process.stdout.write('done\n');
} catch (error) {
  process.stdout.write(`${error.code}\n`);
}
await pool.end();
