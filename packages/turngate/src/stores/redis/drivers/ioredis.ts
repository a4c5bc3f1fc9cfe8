/** ioredis 5 and 6: a client, a client behind Sentinel, or a Cluster. */
import type { InboxEvents, RedisDriver } from '../driver.ts';
import { isRefused } from '../redis-error.ts';

/** By what an ioredis client or cluster is known; its methods are generic beyond restating. */
export interface IoredisLike {
  readonly status: string;
  readonly options: object;
  readonly evalsha: (...args: never[]) => unknown;
  readonly duplicate: (...args: never[]) => object;
  readonly disconnect: (...args: never[]) => void;
}

/** What is called of it. */
interface Client {
  evalsha(...args: string[]): Promise<unknown>;
  eval(...args: string[]): Promise<unknown>;
  call(command: string, ...args: string[]): Promise<unknown>;
  subscribe(...channels: string[]): Promise<unknown>;
  unsubscribe(...channels: string[]): Promise<unknown>;
  on(event: string, listener: (...args: string[]) => void): unknown;
  removeListener(event: string, listener: (...args: string[]) => void): unknown;
  disconnect(): void;
  duplicate(options: object): Client & { connect(): Promise<void> };
}

interface Corkable {
  cork(): void;
  uncork(): void;
}

interface IoredisCommand {
  readonly promise: Promise<unknown>;
}

/** What is reached beyond the typed surface; each part is optional. */
interface Inner {
  readonly isCluster?: boolean;
  readonly stream?: Corkable | null;
  /** What was sent and not answered yet. */
  readonly commandQueue?: { readonly length: number };
  readonly options: {
    readonly keyPrefix?: unknown;
    readonly redisOptions?: { keyPrefix?: unknown };
  };
  readonly constructor: {
    readonly Command?: new (name: string, args: string[], options: object) => IoredisCommand;
  };
  sendCommand?(command: IoredisCommand): Promise<unknown>;
}

/** @param given an ioredis `Redis` or `Cluster` */
export function ioredisDriver(given: IoredisLike): RedisDriver {
  const client = given as unknown as Client;
  const inner = given as unknown as Inner;
  const cluster = inner.isCluster === true;
  const keyPrefix = inner.options.keyPrefix ?? inner.options.redisOptions?.keyPrefix ?? '';
  const { cork, flush } = cluster ? noCork : corkPerTick(inner);
  const send = cluster ? undefined : directSend(inner, String(keyPrefix));
  return {
    name: 'ioredis',
    cluster,
    ordered: !cluster,
    locksPerCommand: 16,
    keyPrefix: String(keyPrefix),
    prefixesKeys: true,
    script(command, args) {
      cork();
      if (send !== undefined) return send(command, args);
      return command === 'EVALSHA' ? client.evalsha(...args) : client.eval(...args);
    },
    command(name, args) {
      cork();
      return send === undefined ? client.call(name, ...args) : send(name, args);
    },
    flush,
    subscribe: (channel, events) =>
      cluster
        ? subscribeOnCluster(client, channel, events)
        : subscribeOnDuplicate(client, channel, events),
  };
}

/** More would leave the server idle while we write and us idle while it answers. */
const commandsPerWrite = 32;

/**
 * The first command of a tick corks the socket, the end of the tick uncorks it: the commands of one
 * tick leave in few writes. While nothing is under way a command leaves at once, so that a lone one
 * pays nothing. Not ioredis' auto-pipelining, which costs it a turn of the event loop.
 */
function corkPerTick(inner: Inner): { cork(): void; flush(): boolean } {
  let corked: Corkable | undefined;
  let commands = 0;
  const uncork = (stream: Corkable): void => {
    if (corked === stream) corked = undefined;
    stream.uncork();
  };
  return {
    cork() {
      const { stream } = inner;
      if (stream == null) return;
      if (corked !== stream) {
        if (inner.commandQueue?.length === 0) return;
        corked = stream;
        commands = 0;
        stream.cork();
        process.nextTick(uncork, stream);
      } else if (++commands % commandsPerWrite === 0) {
        stream.uncork();
        stream.cork();
      }
    },
    flush() {
      if (corked !== undefined) uncork(corked);
      return true;
    },
  };
}

const noCork = { cork() {}, flush: () => true };

/** A command without what `client.evalsha` does around it: rest arguments, auto-pipelining, stacks. */
function directSend(
  inner: Inner,
  keyPrefix: string,
): ((name: string, args: string[]) => Promise<unknown>) | undefined {
  const { Command } = inner.constructor;
  if (Command === undefined || typeof inner.sendCommand !== 'function') return undefined;
  const options =
    keyPrefix === '' ? { replyEncoding: 'utf8' } : { replyEncoding: 'utf8', keyPrefix };
  return (name, args) => {
    const command = new Command(name, args, options);
    void inner.sendCommand?.(command);
    return command.promise;
  };
}

/** The overrides of the subscribing connection: it waits for ever and subscribes by our hand. */
const inboxOptions = { autoResubscribe: false, lazyConnect: true, maxRetriesPerRequest: null };

function subscribeOnDuplicate(client: Client, channel: string, events: InboxEvents): () => void {
  const inbox = client.duplicate(inboxOptions);
  const end = (): void => {
    client.removeListener('end', end);
    inbox.disconnect();
    events.down();
  };
  inbox.on('error', () => {}); // Told by "close"; without a listener ioredis prints it.
  inbox.on('close', () => events.down());
  inbox.on('message', (_: string, payload: string) => events.message(payload));
  inbox.on('ready', () => {
    inbox.subscribe(channel).then(
      () => events.live(),
      (error: unknown) => {
        if (!isRefused(error)) return; // The next "ready" tries again.
        end();
        events.refused(error);
      },
    );
  });
  client.on('end', end);
  inbox.connect().catch(() => {}); // The client's own retry strategy goes on.
  return end;
}

/** A Cluster has a subscribing connection of its own and keeps it up by itself. */
function subscribeOnCluster(client: Client, channel: string, events: InboxEvents): () => void {
  const onMessage = (from: string, payload: string): void => {
    if (from === channel) events.message(payload);
  };
  client.on('message', onMessage);
  client.subscribe(channel).then(
    () => events.live(),
    (error: unknown) => events.refused(error),
  );
  return () => {
    client.removeListener('message', onMessage);
    events.down();
    client.unsubscribe(channel).catch(() => {}); // The cluster may have been ended.
  };
}
