import { describe, it } from 'vitest';
import { lockStoreSuite, recordStoreSuite } from '../src/conformance/index.ts';
import { memory, memoryLocks } from '../src/stores/memory/index.ts';
import { jumpingRuntime } from './support/clock.ts';

const runtime = jumpingRuntime();
const passTime = async (ms: number): Promise<void> => runtime.jump(ms);
const lines: string[] = [];
const records = memory({ runtime });

recordStoreSuite(
  { describe, it },
  {
    name: 'memory',
    open: async () => records,
    write: async (tx, line) => tx.write(() => lines.push(line)),
    written: async (prefix) => lines.filter((line) => line.startsWith(prefix)),
    ownTransaction: (body) => records.transaction(body),
    passTime,
  },
);

const locks = memoryLocks({ runtime });
lockStoreSuite({ describe, it }, { name: 'memory', open: async () => locks, passTime });
