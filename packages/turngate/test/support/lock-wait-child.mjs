// Waits for a lock that another hold never frees; a waiting caller must keep the process alive.
import { createGate } from '../../dist/index.js';
import { memory, memoryLocks } from '../../dist/stores/memory/index.js';

const locks = memoryLocks();
const open = () => createGate({ records: memory(), locks });
await open().acquire('x');
process.stdout.write('waiting\n');
open()
  .acquire('x', { waitMs: 700 })
  .catch(({ code }) => process.stdout.write(`${code}\n`));
