// The floor: SET NX PX and a script that deletes only what is ours. Contended, it polls.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { openClient } from './clients.mjs';
import { inSlices, pollDelayMs } from './settings.mjs';

const RELEASE = `if redis.call('get', KEYS[1]) == ARGV[1] then
  return redis.call('del', KEYS[1])
end
return 0`;
const RENEW = `if redis.call('get', KEYS[1]) == ARGV[1] then
  return redis.call('pexpire', KEYS[1], ARGV[2])
end
return 0`;

const verbs = {
  async ioredis(client) {
    const sha = await client.script('LOAD', RELEASE);
    return {
      set: (key, owner, leaseMs) => client.set(key, owner, 'PX', leaseMs, 'NX'),
      remove: (key, owner) => client.evalsha(sha, 1, key, owner),
    };
  },
  async nodeRedis(client) {
    const sha = await client.scriptLoad(RELEASE);
    return {
      set: (key, owner, leaseMs) =>
        client.set(key, owner, { condition: 'NX', expiration: { type: 'PX', value: leaseMs } }),
      remove: (key, owner) => client.evalSha(sha, { keys: [key], arguments: [owner] }),
    };
  },
};

/** `kind` is a client of clients.mjs. */
export const raw = (kind) => ({
  async open({ port, leaseMs, patientMs = 0 }) {
    const { client, close } = await openClient(kind, port);
    const { set, remove } = await verbs[kind === 'nodeRedis' ? 'nodeRedis' : 'ioredis'](client);
    return {
      close,
      async acquire(key) {
        const owner = randomUUID();
        const endMs = performance.now() + patientMs;
        while ((await set(key, owner, leaseMs)) !== 'OK') {
          if (performance.now() > endMs) throw Object.assign(new Error('busy'), { code: 'BUSY' });
          await sleep(pollDelayMs());
        }
        return () => remove(key, owner);
      },
    };
  },
  /** One script per key and period, all on one timer. */
  async hold({ port, keys, leaseMs, everyMs }) {
    const { client, close } = await openClient('ioredis5', port);
    const sha = await client.script('LOAD', RENEW);
    await inSlices(keys, (key) => client.set(key, 'ours', 'PX', leaseMs, 'NX'));
    let lost = 0;
    const timer = setInterval(() => {
      void (async () => {
        const replies = await Promise.all(
          keys.map((key) => client.evalsha(sha, 1, key, 'ours', leaseMs)),
        );
        lost += replies.filter((reply) => reply !== 1).length;
      })();
    }, everyMs);
    return {
      async stop() {
        clearInterval(timer);
        await close();
        return lost;
      },
    };
  },
});

/** Keys without any renewal: what the process costs anyway. */
export const idle = {
  async hold({ port, keys }) {
    const { client, close } = await openClient('ioredis5', port);
    await inSlices(keys, (key) => client.set(key, 'ours', 'PX', 600_000, 'NX'));
    return {
      async stop() {
        await close();
        return 0;
      },
    };
  },
};
