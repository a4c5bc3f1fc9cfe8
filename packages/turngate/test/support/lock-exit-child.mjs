// Takes and releases 1,000 locks (or keeps one) and must then end by itself. argv: released | held.
import { createGate } from '../../dist/index.js';
import { memory, memoryLocks } from '../../dist/stores/memory/index.js';

const gate = createGate({ records: memory(), locks: memoryLocks() });
for (let i = 0; i < 1_000; i++) {
  const lock = await gate.acquire(`lock ${i % 10}`);
  if (process.argv[2] === 'held' && i === 999) break;
  await lock.release();
}
process.stdout.write('done\n');
