/** The slice of an `Etcd3` client (etcd3 1.1) that the lock store calls; nothing is imported. */

/** A key as etcd gives it. Revisions and lease ids are 64-bit numbers as strings. */
export interface EtcdKeyValueLike {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
  readonly create_revision: string;
  readonly lease: string;
}

/** The answer to a range. */
export interface EtcdRangeReplyLike {
  readonly kvs: readonly EtcdKeyValueLike[];
  readonly count: string;
}

/** The answer to a transaction. */
export interface EtcdTxnReplyLike {
  readonly header: { readonly revision: string };
  readonly succeeded: boolean;
  readonly responses: readonly {
    readonly response_range: EtcdRangeReplyLike;
    readonly response_delete_range: { readonly deleted: string };
  }[];
}

/** Options of one call. */
export interface EtcdCallOptions {
  /** Epoch milliseconds. */
  readonly deadline: number;
}

/** A stream in both directions. */
export interface EtcdStreamLike<Answer> {
  // biome-ignore lint/suspicious/noExplicitAny: what is written differs by stream.
  write(request: any): unknown;
  cancel(): void;
  on(event: 'data', listener: (answer: Answer) => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'end', listener: () => void): unknown;
}

/** What {@link etcdLocks} needs of a client: `new Etcd3(…)` has it all. */
export interface EtcdClientLike {
  readonly kv: {
    // biome-ignore lint/suspicious/noExplicitAny: etcd3 types its requests with its own enums.
    txn(request: any, options?: any): Promise<EtcdTxnReplyLike>;
  };
  readonly leaseClient: {
    // biome-ignore lint/suspicious/noExplicitAny: see above.
    leaseGrant(request: any, options?: any): Promise<{ readonly error: string }>;
    // biome-ignore lint/suspicious/noExplicitAny: see above.
    leaseRevoke(request: any, options?: any): Promise<unknown>;
    // biome-ignore lint/suspicious/noExplicitAny: see above.
    leaseTimeToLive(request: any, options?: any): Promise<{ readonly TTL: string }>;
    // biome-ignore lint/suspicious/noExplicitAny: see above.
    leaseKeepAlive(options?: any): Promise<EtcdStreamLike<EtcdKeepAliveLike>>;
  };
  readonly watchClient: {
    // biome-ignore lint/suspicious/noExplicitAny: see above.
    watch(options?: any): Promise<EtcdStreamLike<EtcdWatchReplyLike>>;
  };
}

/** One answer of a keep-alive stream: what is left of a lease in seconds, 0 when it is gone. */
export interface EtcdKeepAliveLike {
  readonly ID: string;
  readonly TTL: string;
}

/** One answer of a watch stream. */
export interface EtcdWatchReplyLike {
  readonly canceled: boolean;
  readonly events: readonly { readonly type: string }[];
}
