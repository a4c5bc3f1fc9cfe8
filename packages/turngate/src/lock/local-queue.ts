/**
 * One server-side waiter per process and name; everybody else of this process waits here, first
 * come first served, and costs the store nothing.
 */

/** A place in the queue. `turn` resolves when it is the head. */
export interface Place {
  readonly turn: Promise<void>;
  /** Leaves the queue, from anywhere in it; the next place becomes the head. Safe to repeat. */
  leave(): void;
}

interface Waiter {
  readonly grant: () => void;
}

/** FIFO queues by name; a name without waiters leaves nothing behind. */
export class LocalQueues {
  private readonly queues = new Map<string, Set<Waiter>>();

  /** Would a new arrival have to wait for somebody of this process? */
  occupied(name: string): boolean {
    return this.queues.has(name);
  }

  /** Takes a place at the end. */
  enter(name: string): Place {
    const queue = this.queues.get(name) ?? new Set<Waiter>();
    this.queues.set(name, queue);
    let grant!: () => void;
    const turn = new Promise<void>((resolve) => {
      grant = resolve;
    });
    const waiter: Waiter = { grant };
    queue.add(waiter); // A Set keeps order and removes from the middle in O(1).
    if (queue.size === 1) grant();
    return { turn, leave: () => this.leave(name, queue, waiter) };
  }

  private leave(name: string, queue: Set<Waiter>, waiter: Waiter): void {
    const [head] = queue;
    if (!queue.delete(waiter)) return;
    if (queue.size === 0) this.queues.delete(name);
    else if (head === waiter) {
      const [next] = queue;
      next?.grant();
    }
  }
}
