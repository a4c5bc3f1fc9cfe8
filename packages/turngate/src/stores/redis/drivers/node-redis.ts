/** node-redis: a client, a cluster, or a sentinel client. */
import type { InboxEvents, RedisDriver } from '../driver.ts';
import { isRefused } from '../redis-error.ts';

type AnyMethod = (...args: never[]) => unknown;

/** By what a node-redis client is known; its methods are generic beyond restating. */
export interface NodeRedisLike {
  readonly isReady: boolean;
  readonly sendCommand: AnyMethod;
  readonly duplicate: AnyMethod;
}

/** By what a node-redis cluster is known. */
export interface NodeRedisClusterLike {
  readonly sendCommand: AnyMethod;
  readonly subscribe: AnyMethod;
  readonly getSlotRandomNode: AnyMethod;
}

/** By what a node-redis sentinel client is known. */
export interface NodeRedisSentinelLike {
  readonly sendCommand: AnyMethod;
  readonly subscribe: AnyMethod;
  readonly getSentinelNode: AnyMethod;
}

type Heard = (message: string) => void;

/** What is called of all of them. */
interface Client {
  subscribe(channel: string, heard: Heard): Promise<unknown>;
  unsubscribe(channel: string, heard: Heard): Promise<unknown>;
  on(event: string, listener: () => void): unknown;
  off(event: string, listener: () => void): unknown;
}

/** A client made by `duplicate`. */
interface Subscriber extends Client {
  readonly isOpen: boolean;
  connect(): Promise<unknown>;
  destroy(): void;
}

type Send = (args: string[], firstKey?: string) => Promise<unknown>;

/** @param given what `createClient` of `redis` made */
export function nodeRedisDriver(given: NodeRedisLike): RedisDriver {
  const client = given as unknown as Client & {
    sendCommand(args: string[]): Promise<unknown>;
    duplicate(): Subscriber;
  };
  return driverOver(client, {
    cluster: false,
    ordered: true,
    send: (args) => client.sendCommand(args),
    subscribe: (channel, events) => subscribeOnDuplicate(client, channel, events),
  });
}

/** @param given what `createCluster` of `redis` made */
export function nodeRedisClusterDriver(given: NodeRedisClusterLike): RedisDriver {
  const client = given as unknown as Client & {
    sendCommand(firstKey: string | undefined, readonly: boolean, args: string[]): Promise<unknown>;
  };
  return driverOver(client, {
    cluster: true,
    ordered: false,
    send: (args, firstKey) => client.sendCommand(firstKey, false, args),
    subscribe: (channel, events) => subscribeOnItself(client, channel, events),
  });
}

/** @param given what `createSentinel` of `redis` made */
export function nodeRedisSentinelDriver(given: NodeRedisSentinelLike): RedisDriver {
  const client = given as unknown as Client & {
    sendCommand(readonly: boolean, args: string[]): Promise<unknown>;
  };
  return driverOver(client, {
    cluster: false,
    // It may use several connections, so what a command follows is not known.
    ordered: false,
    send: (args) => client.sendCommand(false, args),
    subscribe: (channel, events) => subscribeOnItself(client, channel, events),
  });
}

function driverOver(
  client: object,
  how: Pick<RedisDriver, 'cluster' | 'ordered' | 'subscribe'> & { readonly send: Send },
): RedisDriver {
  return {
    name: 'node-redis',
    cluster: how.cluster,
    ordered: how.ordered,
    // A command costs it much, so twice as many as ioredis.
    locksPerCommand: 32,
    keyPrefix: String((client as { _keyPrefix?: unknown })._keyPrefix ?? ''),
    // Raw commands are sent as they are.
    prefixesKeys: false,
    script: (command, args) => how.send([command, ...args], args[2]),
    command: (name, args, key) => how.send([name, ...args], key),
    flush: () => false,
    subscribe: how.subscribe,
  };
}

function subscribeOnDuplicate(
  client: Client & { duplicate(): Subscriber },
  channel: string,
  events: InboxEvents,
): () => void {
  const inbox = client.duplicate();
  let subscribed = false;
  let ended = false;
  const end = (): void => {
    if (ended) return;
    ended = true;
    client.off('end', end);
    if (inbox.isOpen) inbox.destroy();
    events.down();
  };
  inbox.on('error', () => events.down());
  // After a reconnect it subscribes again before it calls itself ready.
  inbox.on('ready', () => subscribed && !ended && events.live());
  inbox.on('reconnecting', () => events.down());
  client.on('end', end);
  inbox
    .connect()
    .then(() => inbox.subscribe(channel, (payload) => events.message(payload)))
    .then(
      () => {
        subscribed = true;
        if (!ended) events.live();
      },
      (error: unknown) => {
        end();
        if (isRefused(error)) events.refused(error);
      },
    );
  return end;
}

/** Clusters and sentinel clients keep a subscribing connection of their own. */
function subscribeOnItself(client: Client, channel: string, events: InboxEvents): () => void {
  const listener = (payload: string): void => events.message(payload);
  client.subscribe(channel, listener).then(
    () => events.live(),
    (error: unknown) => events.refused(error),
  );
  return () => {
    events.down();
    client.unsubscribe(channel, listener).catch(() => {});
  };
}
