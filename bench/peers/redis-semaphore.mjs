// redis-semaphore's mutex.
import { Mutex } from 'redis-semaphore';
import { openClient } from './clients.mjs';
import { inSlices, POLL_MS } from './settings.mjs';

export const mutex = {
  async open({ port, leaseMs, patientMs, renew = true }) {
    const { client, close } = await openClient('ioredis5', port);
    const options = {
      lockTimeout: leaseMs,
      onLockLost() {},
      ...(renew ? {} : { refreshInterval: 0 }),
      ...(patientMs === undefined ? {} : { acquireTimeout: patientMs, retryInterval: POLL_MS }),
    };
    return {
      close,
      async acquire(key) {
        const lock = new Mutex(client, key, options);
        await lock.acquire();
        return () => lock.release();
      },
    };
  },
  async hold({ port, keys, leaseMs, everyMs }) {
    const { client, close } = await openClient('ioredis5', port);
    let lost = 0;
    const options = { lockTimeout: leaseMs, refreshInterval: everyMs, onLockLost: () => lost++ };
    const locks = await inSlices(keys, async (key) => {
      const lock = new Mutex(client, key, options);
      await lock.acquire();
      return lock;
    });
    return {
      async stop() {
        await inSlices(locks, (lock) => lock.release());
        await close();
        return lost;
      },
    };
  },
};
