/** Stores inside this process. */

export { memoryLocks } from './memory-locks.ts';
export {
  type MemoryOptions,
  type MemoryRecordStore,
  type MemoryTx,
  memory,
} from './memory-records.ts';
export { memoryStaged } from './memory-staged.ts';
