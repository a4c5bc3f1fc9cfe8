/** Many readers of one thing at once, few reads. */

/**
 * Joins reads of one key in this process: one runs, and who comes meanwhile shares the next one, which
 * starts after they came. So nobody reads what was true before the question, and however many ask, two
 * reads of a key are enough.
 */
export function joinedReads<Value>(
  read: (key: string) => Promise<Value>,
): (key: string) => Promise<Value> {
  const lines = new Map<string, { next: Promise<Value> | undefined; running: Promise<Value> }>();
  const start = (key: string): Promise<Value> => {
    const line = { running: read(key), next: undefined as Promise<Value> | undefined };
    lines.set(key, line);
    const ended = (): void => {
      if (line.next === undefined) lines.delete(key);
    };
    line.running.then(ended, ended);
    return line.running;
  };
  return (key) => {
    const line = lines.get(key);
    if (line === undefined) return start(key);
    const again = (): Promise<Value> => start(key);
    line.next ??= line.running.then(again, again);
    return line.next;
  };
}
