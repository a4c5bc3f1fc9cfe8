// The same work as a Turngate operation.
import { setTimeout as sleep } from 'node:timers/promises';
import { createGate } from 'turngate';
import { memoryLocks } from 'turngate/memory';
import { postgres } from 'turngate/postgres';
import { UPDATE } from './workload.mjs';

/** How a handler does the work on each client. */
const WORK = {
  async pg(tx, account) {
    return (await tx.query({ ...UPDATE, values: [account] })).rows[0].balance;
  },
  async postgresJs(tx, account) {
    const [row] = await tx`
      UPDATE accounts SET balance = balance + 1 WHERE id = ${account} RETURNING balance`;
    return row.balance;
  },
};

/**
 * Declares the operation. `executions` counts handler runs, to be compared with the number of keys;
 * `delayMs` makes the work longer.
 */
export function guarded(client, options = {}) {
  const { memory = false, lock = false, prepare = true, work = 'pg', delayMs = 0 } = options;
  const gate = createGate({
    records: postgres(client, { prepare }),
    ...(memory ? {} : { memoryCharsMax: 0 }),
    ...(lock ? { locks: memoryLocks() } : {}),
  });
  const state = { executions: 0 };
  const operation = gate.operation({
    name: 'account.add',
    key: ({ key }) => key,
    fingerprint: ({ account }) => ({ account }),
    ...(lock ? { lock: ({ account }) => `account:${account}` } : {}),
    async run({ account }, { tx }) {
      state.executions++;
      const balance = await WORK[work](tx, account);
      if (delayMs > 0) await sleep(delayMs);
      return { balance };
    },
  });
  return {
    state,
    call: async (request) => (await operation(request)).value.balance,
    async within(request) {
      const tx = await client.connect();
      try {
        await tx.query('BEGIN');
        const { value } = await operation.within(tx, request);
        await tx.query('COMMIT');
        return value.balance;
      } catch (error) {
        await tx.query('ROLLBACK').catch(() => {});
        throw error;
      } finally {
        tx.release();
      }
    },
    close: () => gate.close(),
  };
}
