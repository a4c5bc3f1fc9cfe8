// A process that works on one operation and is killed where the parent says.
// argv: database URL, key, where ("before-commit" | "after-commit").
import pg from 'pg';
import { createGate } from '../../dist/index.js';
import { postgres } from '../../dist/stores/postgres/index.js';

const [url, key, where] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: url, max: 2 });
pool.on('error', () => undefined);
const gate = createGate({ records: postgres(pool) });
const pay = gate.operation({
  name: 'child.pay',
  key: (input) => input.key,
  async run(_input, { tx }) {
    await tx.query('INSERT INTO effect (line) VALUES ($1)', [key]);
    if (where === 'before-commit') {
      process.stdout.write('written\n');
      await new Promise((resolve) => setTimeout(resolve, 60_000));
    }
    return { by: process.pid };
  },
});
await pay({ key });
process.stdout.write('committed\n');
setTimeout(() => {}, 60_000); // Until it is killed.
