/**
 * Who wants a push for an attempt, and what each waits to see go. Watching starts before the first
 * try, when it is not known yet what stands in front; each try that is refused then says it.
 */

interface Follower {
  readonly onPush: () => void;
  target: string | undefined;
  unwatch: (() => void) | undefined;
}

/** Watchers by attempt. */
export class Followers {
  private readonly followers = new Map<string, Set<Follower>>();

  /** Adds a watcher; the answer takes it back. */
  add(attempt: string, onPush: () => void): () => void {
    const follower: Follower = { onPush, target: undefined, unwatch: undefined };
    const followers = this.followers.get(attempt) ?? new Set();
    this.followers.set(attempt, followers.add(follower));
    return () => {
      follower.unwatch?.();
      followers.delete(follower);
      if (followers.size === 0) this.followers.delete(attempt);
    };
  }

  /** Is there a watcher that waits for nothing yet? */
  wanting(attempt: string): boolean {
    for (const { target } of this.followers.get(attempt) ?? []) {
      if (target === undefined) return true;
    }
    return false;
  }

  /** Lets the watchers of an attempt wait for `target`; `listen` calls back when it has gone. */
  follow(attempt: string, target: string, listen: (onGone: () => void) => () => void): void {
    for (const follower of this.followers.get(attempt) ?? []) {
      if (follower.target === target) continue;
      follower.unwatch?.();
      follower.target = target;
      follower.unwatch = listen(() => {
        follower.target = undefined;
        follower.unwatch = undefined;
        follower.onPush();
      });
    }
  }

  /** Pushes to everybody: something may have been missed. */
  pushAll(): void {
    for (const attempt of [...this.followers.keys()]) this.push(attempt);
  }

  /** Pushes to the watchers of an attempt: it may try at once. */
  push(attempt: string): void {
    for (const { onPush } of [...(this.followers.get(attempt) ?? [])]) onPush();
  }
}
