// The Redis of the lock suite: its own, and its own counters.
import { startRedis } from '@turngate/test-servers';

/** Sent by any client; further ones are named by the adapters. INFO is the meter itself. */
const SENT = ['evalsha', 'eval', 'ping', 'subscribe', 'unsubscribe', 'select'];

/** Starts Redis on a free port, without a disk, as the peers' figures were taken. */
export async function startBenchRedis() {
  const server = await startRedis();
  const { openClient } = await import('../peers/clients.mjs');
  const { client, close } = await openClient('ioredis5', server.port);
  return {
    port: server.port,
    client,
    version: /redis_version:(\S+)/.exec(await client.info('server'))[1],
    async stop() {
      await close();
      await server.stop();
    },
  };
}

/** Commands and processor time so far. */
export async function readMeter(client) {
  const calls = new Map();
  for (const [, name, count] of (await client.info('commandstats')).matchAll(
    /cmdstat_([^:]+):calls=(\d+)/g,
  )) {
    calls.set(name, Number(count));
  }
  const cpu = await client.info('cpu');
  const seconds = (name) => Number(new RegExp(`${name}:([\\d.]+)`).exec(cpu)[1]);
  return { calls, cpuMs: 1_000 * (seconds('used_cpu_user') + seconds('used_cpu_sys')) };
}

/** What happened between two readings: commands that travelled, and processor time. */
export function meterBetween(before, after, sent = []) {
  const commands = [...SENT, ...sent].reduce(
    (sum, name) => sum + (after.calls.get(name) ?? 0) - (before.calls.get(name) ?? 0),
    0,
  );
  return { commands, cpuMs: after.cpuMs - before.cpuMs };
}

/** The median of 200 sequential PINGs, in microseconds. */
export async function pingUs(client) {
  const tripsUs = [];
  for (let i = 0; i < 200; i++) {
    const sentMs = performance.now();
    await client.ping();
    tripsUs.push((performance.now() - sentMs) * 1_000);
  }
  return tripsUs.sort((a, b) => a - b)[100];
}
