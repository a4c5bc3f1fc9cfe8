/** Clients of a test's Redis server, ended after the test file. */
import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
import { createClient } from 'redis';
import { afterAll } from 'vitest';
import type { LockAttempt } from '../../src/contract/lock-store.ts';
import { systemRuntime } from '../../src/runtime/runtime.ts';
import type { RedisClient } from '../../src/stores/redis/index.ts';

/** A prefix of its own, so that tests may share a server. */
export function freshPrefix(): string {
  return `t${randomBytes(6).toString('hex')}:`;
}

/** A new attempt that stands in the queue while the name is held. */
export function attemptAt(name: string, more: Partial<LockAttempt> = {}): LockAttempt {
  const owner = systemRuntime.randomId();
  return { name, owner, leaseMs: 60_000, queueMs: 5_000, ...more };
}

const ends: (() => unknown)[] = [];
afterAll(async () => {
  for (const end of ends.reverse()) await end();
  ends.length = 0;
});

/** Ends something after the test file, newest first. */
export function endAfter(end: () => unknown): void {
  ends.push(end);
}

export function ioredis(url: string, options: object = {}): Redis {
  const client = new Redis(url, options);
  client.on('error', () => {});
  endAfter(() => client.disconnect());
  return client;
}

function ioredis5(url: string, options: object = {}): Redis5 {
  const client = new Redis5(url, options);
  client.on('error', () => {});
  endAfter(() => client.disconnect());
  return client;
}

export async function nodeRedis(url: string, options: object = {}) {
  const client = createClient({ url, ...options });
  client.on('error', () => {});
  endAfter(() => client.isOpen && client.destroy());
  await client.connect();
  return client;
}

/** The clients every law should hold on. */
export const clientKinds: Readonly<Record<string, (url: string) => Promise<RedisClient>>> = {
  'ioredis 6': async (url) => ioredis(url),
  'ioredis 5': async (url) => ioredis5(url),
  'node-redis': async (url) => await nodeRedis(url),
};
