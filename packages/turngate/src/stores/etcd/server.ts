/** Calls to etcd that end, and errors in our own words. */
import { isTurngateError, TurngateError } from '../../core/errors.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type {
  EtcdClientLike,
  EtcdKeepAliveLike,
  EtcdStreamLike,
  EtcdTxnReplyLike,
} from './client.ts';

const requestsMax = 100; // etcd refuses transactions of more than 128 operations.

/** What the store asks of etcd. Every call is answered or fails within the limit. */
export class EtcdServer {
  private readonly runtime: Runtime;
  private readonly client: EtcdClientLike;
  private readonly limitMs: number;

  constructor(runtime: Runtime, client: EtcdClientLike, limitMs: number) {
    this.runtime = runtime;
    this.client = client;
    this.limitMs = limitMs;
  }

  txn(request: object): Promise<EtcdTxnReplyLike> {
    return this.call((options) => this.client.kv.txn(request, options));
  }

  /** Does the same to many keys, in as few transactions as the server allows. */
  async readAll(requests: readonly object[]): Promise<EtcdTxnReplyLike['responses']> {
    const parts: object[][] = [];
    for (let i = 0; i < requests.length; i += requestsMax) {
      parts.push(requests.slice(i, i + requestsMax));
    }
    const replies = await Promise.all(parts.map((success) => this.txn({ success })));
    return replies.flatMap(({ responses }) => responses);
  }

  /** The id is ours, so that a lease whose grant was never answered can be revoked. */
  async grantLease(id: string, ttlMs: number): Promise<void> {
    const request = { ID: id, TTL: secondsOf(ttlMs) };
    await this.call((options) => this.client.leaseClient.leaseGrant(request, options));
  }

  /** Deletes its keys too. A lease that is gone already is fine. */
  async revokeLease(id: string): Promise<void> {
    try {
      await this.call((options) => this.client.leaseClient.leaseRevoke({ ID: id }, options));
    } catch (error) {
      if (!isLeaseNotFound(error)) throw error;
    }
  }

  /** What is left of a lease; 0 when it is gone. */
  async leaseLeftMs(id: string): Promise<number> {
    const reply = await this.call((options) =>
      this.client.leaseClient.leaseTimeToLive({ ID: id }, options),
    );
    return Math.max(0, Number(reply.TTL)) * 1_000;
  }

  /**
   * Fills leases up; gives those that lived. A stream of its own for each batch, ended by our own
   * deadline: a long-lived one can hang half-open without anybody noticing.
   */
  async keepAlive(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const alive = new Set<string>();
    if (ids.length === 0) return alive;
    let stream: EtcdStreamLike<EtcdKeepAliveLike> | undefined;
    try {
      await this.call(async (options) => {
        stream = await this.client.leaseClient.leaseKeepAlive(options);
        await answersTo(stream, ids, alive);
      });
    } finally {
      stream?.cancel();
    }
    return alive;
  }

  /** Calls `onEvent` for deletions of a key from a revision on, `onEnd` when the stream ends. */
  async watchDeletes(
    key: Buffer,
    fromRevision: string,
    told: { onDelete: () => void; onEnd: () => void },
  ): Promise<() => void> {
    const stream = await this.client.watchClient.watch();
    stream.on('data', ({ canceled, events }) => {
      // Canceled: the revision was compacted away, so nobody knows. Asking again does no harm.
      if (canceled || events?.length > 0) told.onDelete();
    });
    stream.on('error', told.onEnd);
    stream.on('end', told.onEnd);
    stream.write({
      create_request: { key, start_revision: fromRevision, filters: ['Noput'] },
    });
    return () => stream.cancel();
  }

  private async call<T>(send: (options: { deadline: number }) => Promise<T>): Promise<T> {
    const { limitMs } = this;
    // The client's own deadline frees its memory; ours also covers connecting.
    const sent = send({ deadline: this.runtime.wallMs() + limitMs });
    return await new Promise<T>((resolve, reject) => {
      const timer = this.runtime.timer(limitMs, false, () =>
        reject(unavailable(`no answer within ${limitMs} ms`)),
      );
      sent.then(
        (value) => {
          timer.cancel();
          resolve(value);
        },
        (error: unknown) => {
          timer.cancel();
          reject(isTurngateError(error) ? error : unavailable((error as Error).message, error));
        },
      );
    });
  }
}

/** etcd counts leases in whole seconds. */
export function secondsOf(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000));
}

function answersTo(
  stream: EtcdStreamLike<EtcdKeepAliveLike>,
  ids: readonly string[],
  alive: Set<string>,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let left = ids.length;
    stream.on('data', ({ ID, TTL }) => {
      if (Number(TTL) > 0) alive.add(ID);
      if (--left === 0) resolve();
    });
    stream.on('error', reject);
    stream.on('end', () => reject(new Error('the keep-alive stream ended')));
    for (const id of ids) stream.write({ ID: id });
  });
}

function isLeaseNotFound(error: unknown): boolean {
  return /lease not found/i.test(String((error as Error)?.message));
}

function unavailable(what: string, cause?: unknown): TurngateError {
  const message = `etcd is not available: ${what}`;
  return new TurngateError('STORE_UNAVAILABLE', message, { cause, retryAfterMs: 1_000 });
}
