/** Who wants to know that a node is gone; one watch per node, however many wait for it. */
import type { Session } from './session.ts';

/** Listeners by path, in one session. */
export class Departures {
  private readonly listeners = new Map<string, Set<() => void>>();
  /** Nodes the server will tell us about. A watch cannot be taken back, so it is kept and reused. */
  private readonly watched = new Set<string>();
  private readonly session: Session;

  constructor(session: Session) {
    this.session = session;
  }

  /** Calls `onGone` once, now or later; the answer takes it back. Errors are left to polling. */
  add(path: string, onGone: () => void): () => void {
    const listeners = this.listeners.get(path) ?? new Set();
    this.listeners.set(path, listeners.add(onGone));
    if (!this.watched.has(path)) {
      this.watched.add(path);
      this.session
        .watchGone(path, () => this.gone(path))
        .then(
          (watched) => {
            if (!watched) this.gone(path);
          },
          () => void this.watched.delete(path),
        );
    }
    return () => {
      listeners.delete(onGone);
      if (listeners.size === 0 && this.listeners.get(path) === listeners) {
        this.listeners.delete(path);
      }
    };
  }

  /** Tells the listeners of a node. */
  gone(path: string): void {
    const listeners = this.listeners.get(path);
    this.listeners.delete(path);
    this.watched.delete(path);
    for (const listener of listeners ?? []) listener();
  }

  /** Tells everybody: the session is over. */
  allGone(): void {
    for (const path of [...this.listeners.keys()]) this.gone(path);
    this.watched.clear();
  }
}
