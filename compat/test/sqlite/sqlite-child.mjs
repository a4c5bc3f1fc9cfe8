// Increments one counter under operations of its own keys, and once under a key all processes share.
import Database from 'better-sqlite3';
import { createGate } from 'turngate';
import { sqlite } from 'turngate/sqlite';

const [file, name, count] = process.argv.slice(2);
const db = new Database(file);
const gate = createGate({ records: sqlite(db) });
const add = gate.operation({
  name: 'counter.add',
  scope: () => 'test',
  key: ({ key }) => key,
  fingerprint: ({ key }) => key,
  async run(input, { tx }) {
    const { n } = tx.prepare('SELECT n FROM counter').get();
    await Promise.resolve(); // Gives way in the middle, where a lost update would happen.
    tx.prepare('UPDATE counter SET n = ?').run(n + 1);
    return { by: input.by };
  },
});
for (let i = 0; i < Number(count); i++) {
  await add({ key: `${name}-${i}`, by: name });
  const shared = await add({ key: `shared-${i}`, by: name });
  process.stdout.write(`${i} ${shared.value.by}\n`);
}
db.close();
