/** The slice of a node-zookeeper-client `Client` that the lock store calls; nothing is imported. */

/** Part of a node's status. 64-bit numbers come as 8 bytes, big-endian. */
export interface ZookeeperStatLike {
  readonly czxid: Uint8Array;
  readonly ephemeralOwner: Uint8Array;
}

/** An error answer; `code` is ZooKeeper's number. */
export interface ZookeeperErrorLike {
  readonly code?: unknown;
}

type Callback<T> = (error: ZookeeperErrorLike | null | undefined, value?: T) => void;

/** What {@link zookeeperLocks} needs of a client of node-zookeeper-client 1.1. */
export interface ZookeeperClientLike {
  connect(): void;
  close(): void;
  /** Its private part: a connection that hangs while it is made can only be ended here. */
  readonly connectionManager?: { readonly socket?: { destroy(): unknown } };
  getState(): { getName(): string };
  getSessionId(): Uint8Array;
  /** Milliseconds; the negotiated value once connected. */
  getSessionTimeout(): number;
  on(event: 'state', listener: (state: { getName(): string }) => void): unknown;
  removeListener(event: 'state', listener: (state: { getName(): string }) => void): unknown;
  create(path: string, acls: unknown, mode: number, callback: Callback<string>): void;
  remove(path: string, callback: Callback<void>): void;
  getData(path: string, watcher: () => void, callback: Callback<unknown>): void;
  exists(path: string, callback: Callback<ZookeeperStatLike | null>): void;
  getChildren(path: string, callback: Callback<readonly string[]>): void;
}

/** ZooKeeper's error numbers that mean something to us. */
export const zkCode = {
  connectionLoss: -4,
  noNode: -101,
  nodeExists: -110,
  notEmpty: -111,
  sessionExpired: -112,
} as const;

/** ZooKeeper's create modes that we use. */
export const createMode = { persistent: 0, ephemeralSequential: 3 } as const;

/** 8 bytes as the number they are: session ids and transaction ids do not fit a double. */
export function int64(bytes: Uint8Array): bigint {
  return new DataView(bytes.buffer, bytes.byteOffset, 8).getBigInt64(0);
}
