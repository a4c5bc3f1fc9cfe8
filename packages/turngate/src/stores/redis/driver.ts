/** What a Redis client must be able to do for us; one small file per client in drivers/. */

/** A Lua script, embedded from scripts/*.lua. */
export interface Script {
  readonly name: string;
  readonly sha1: string;
  readonly lua: string;
}

/** What happens on a subscription. None of them may throw. */
export interface InboxEvents {
  message(payload: string): void;
  /** Subscribed, again after each reconnect: messages before it are lost. */
  live(): void;
  /** The connection is gone; the driver goes on trying. */
  down(): void;
  /** It will never work: the server refuses. */
  refused(error: unknown): void;
}

/** The port. A rejection is the client's own error, untranslated. */
export interface RedisDriver {
  readonly name: 'ioredis' | 'node-redis';
  /** Do slots count? Then PUBLISH cannot say either whether it was heard. */
  readonly cluster: boolean;
  /** Do commands of one tick follow each other on one connection, so that WAIT means the last? */
  readonly ordered: boolean;
  /**
   * How many locks a command should be about at most. More cost less each, but the server must have
   * the first command to work on while we make the next.
   */
  readonly locksPerCommand: number;
  /** Put before every key and channel by whoever configured the client. */
  readonly keyPrefix: string;
  /** Does the client put `keyPrefix` before the keys of a script by itself? */
  readonly prefixesKeys: boolean;
  /**
   * EVALSHA or EVAL.
   *
   * @param args digest or text, number of keys, keys, arguments
   */
  script(command: 'EVALSHA' | 'EVAL', args: string[]): Promise<unknown>;
  /**
   * Any other command.
   *
   * @param key where it belongs in a cluster; for a command without a key left out
   */
  command(name: string, args: string[], key?: string): Promise<unknown>;
  /**
   * Lets go of what was sent in this tick, instead of at its end: the server starts on it. False
   * where the client writes at the end of the turn whatever we do.
   */
  flush(): boolean;
  /**
   * Listens to one channel on a connection of its own, opened now and kept up; returns its end. Ends
   * by itself with the client.
   */
  subscribe(channel: string, events: InboxEvents): () => void;
}
