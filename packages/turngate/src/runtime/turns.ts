/** Calls that must not overlap: one after another per key, other keys side by side. */

/** Runs calls of one key in the order they came, whatever became of those before. */
export class Turns {
  private readonly tails = new Map<string, Promise<unknown>>();

  take<T>(key: string, call: () => Promise<T>): Promise<T> {
    const before = this.tails.get(key);
    const running = before === undefined ? call() : before.then(call, call);
    const end = (): void => {
      if (this.tails.get(key) === tail) this.tails.delete(key);
    };
    const tail: Promise<void> = running.then(end, end);
    this.tails.set(key, tail);
    return running;
  }
}
