/** Who wants to know that a key is gone; one watch per key, however many wait for it. */
import type { Runtime } from '../../runtime/runtime.ts';
import type { EtcdServer } from './server.ts';

const rewatchMs = 500;

interface Watched {
  readonly listeners: Set<() => void>;
  end(): void;
}

/** Listeners by key. A watch lives as long as somebody listens. */
export class Departures {
  private readonly watched = new Map<string, Watched>();
  private readonly runtime: Runtime;
  private readonly server: EtcdServer;

  constructor(runtime: Runtime, server: EtcdServer) {
    this.runtime = runtime;
    this.server = server;
  }

  /** Calls `onGone` once when the key, seen at this revision, is deleted. */
  add(key: Buffer, seenAt: string, onGone: () => void): () => void {
    const id = key.toString();
    let watched = this.watched.get(id);
    if (watched === undefined) {
      watched = this.watchKey(id, key, seenAt);
      this.watched.set(id, watched);
    }
    const { listeners } = watched;
    listeners.add(onGone);
    return () => {
      listeners.delete(onGone);
      if (listeners.size === 0 && this.watched.get(id)?.listeners === listeners) this.drop(id);
    };
  }

  /** Tells the listeners of a key that we deleted ourselves, before the server does. */
  gone(key: Buffer): void {
    const id = key.toString();
    const listeners = this.watched.get(id)?.listeners;
    this.drop(id);
    for (const listener of listeners ?? []) listener();
  }

  private drop(id: string): void {
    this.watched.get(id)?.end();
    this.watched.delete(id);
  }

  private watchKey(id: string, key: Buffer, seenAt: string): Watched {
    let ended = false;
    let cancel: (() => void) | undefined;
    // From the revision after the one we saw it at: nothing between is missed, nor repeated.
    const from = String(BigInt(seenAt) + 1n);
    const begin = (): void => {
      const again = (): void => {
        cancel = undefined;
        if (!ended) this.runtime.timer(rewatchMs, false, () => ended || begin());
      };
      const onDelete = (): void => {
        if (!ended) this.gone(Buffer.from(id));
      };
      let broken = false;
      const onEnd = (): void => {
        if (broken) return;
        broken = true;
        again();
      };
      this.server.watchDeletes(key, from, { onDelete, onEnd }).then((stop) => {
        if (ended) stop();
        else if (!broken) cancel = stop;
      }, onEnd);
    };
    begin();
    return {
      listeners: new Set(),
      end() {
        ended = true;
        cancel?.();
      },
    };
  }
}
