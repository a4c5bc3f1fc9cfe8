// Turngate's locks with fence, queue and renewal, over each client.
import { createGate } from 'turngate';
import { memory } from 'turngate/memory';
import { redisLocks } from 'turngate/redis';
import { openClient } from '../peers/clients.mjs';
import { inSlices } from '../peers/settings.mjs';

async function openGate(kind, port) {
  const { client, close } = await openClient(kind, port);
  const locks = redisLocks(client);
  const gate = createGate({ records: memory(), locks });
  return {
    gate,
    async close() {
      await gate.close();
      locks.close();
      await close();
    },
  };
}

/** Options of one acquire; undefined where every default is left, as most callers do. */
function optionsOf({ leaseMs, patientMs, renew, handOver }) {
  const options = {
    ...(leaseMs === undefined || leaseMs === 30_000 ? {} : { leaseMs }),
    ...(patientMs === undefined ? {} : { waitMs: patientMs }),
    ...(renew === false ? { renew } : {}),
    ...(handOver ? {} : { handOver }),
  };
  return Object.keys(options).length === 0 ? undefined : options;
}

const overClient = (kind, handOver) => ({
  async open({ port, leaseMs, patientMs, renew }) {
    const { gate, close } = await openGate(kind, port);
    const options = optionsOf({ leaseMs, patientMs, renew, handOver });
    return {
      close,
      async acquire(key) {
        const lock = await gate.acquire(key, options);
        return () => lock.release();
      },
    };
  },
  async hold({ port, keys, leaseMs }) {
    const { gate, close } = await openGate(kind, port);
    const locks = await inSlices(keys, (key) => gate.acquire(key, { leaseMs }));
    return {
      async stop() {
        // The store itself says which were still ours.
        const results = await inSlices(locks, (lock) => lock.release());
        await close();
        return results.filter((result) => result !== 'released').length;
      },
    };
  },
});

export const ioredis5 = overClient('ioredis5', true);
export const ioredis6 = overClient('ioredis6', true);
export const nodeRedis = overClient('nodeRedis', true);
export const ioredis5NoHandOver = overClient('ioredis5', false);
export const nodeRedisNoHandOver = overClient('nodeRedis', false);
