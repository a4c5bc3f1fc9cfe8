// Locks on Redis against raw commands and the other lock libraries.
import { readFile } from 'node:fs/promises';
import { installPeers } from '../lib/install-peers.mjs';
import { startBenchRedis } from '../lib/redis.mjs';
import { contended } from '../locks/contended.mjs';
import { cycles } from '../locks/cycles.mjs';
import { expired } from '../locks/expired.mjs';
import { fairness } from '../locks/fairness.mjs';
import { hold } from '../locks/hold.mjs';
import { idleWaiter } from '../locks/idle-waiter.mjs';
import { uncontended } from '../locks/uncontended.mjs';

async function peerVersions() {
  const file = new URL('../peers/package.json', import.meta.url);
  const { dependencies } = JSON.parse(await readFile(file, 'utf8'));
  return Object.fromEntries(
    Object.entries(dependencies).map(([name, wanted]) => [name, wanted.replace(/^npm:.*@/, '')]),
  );
}

export const locks = {
  id: 'locks',
  prepare: installPeers,
  async open({ say }) {
    say('starting Redis');
    const redis = await startBenchRedis();
    const versions = { 'redis-server': redis.version, ...(await peerVersions()) };
    return { redis, versions, stop: () => redis.stop() };
  },
  scenarios: [uncontended, contended, fairness, idleWaiter, hold, expired, cycles],
};
