/**
 * Many deadlines, one timer: a binary heap whose entries know their own index, so that taking one
 * out costs O(log n) and nothing is left behind. Adding a later deadline than all others is O(1).
 */
import type { Runtime, Timer } from './runtime.ts';

/** Something that is due at a time of the monotonic clock. In one heap at most, once. */
export interface Due {
  dueMonoMs: number;
  /** Index in the heap; -1 when in none. */
  dueIndex: number;
  onDue(nowMonoMs: number): void;
}

/** Calls `onDue` of its entries in order of time. */
export class DueHeap<Entry extends Due = Due> {
  private readonly entries: Entry[] = [];
  /** When each entry is due, side by side in memory: comparing must not visit the entries. */
  private readonly timesMs: number[] = [];
  private readonly runtime: Runtime;
  private readonly keepAlive: boolean;
  private readonly drain: (heap: DueHeap<Entry>) => void;
  private timer: Timer | undefined;
  private timerAtMonoMs = Number.POSITIVE_INFINITY;

  /**
   * @param keepAlive whether the process stays alive while the heap has entries. If not, a timer
   *   that is no longer needed is left to run out: cheaper than taking it back each time.
   * @param drain what a tick does; the default takes everything that is due
   */
  constructor(
    runtime: Runtime,
    keepAlive: boolean,
    drain: (heap: DueHeap<Entry>) => void = drainAll<Entry>,
  ) {
    this.runtime = runtime;
    this.keepAlive = keepAlive;
    this.drain = drain;
  }

  get size(): number {
    return this.entries.length;
  }

  /** The entry that is due first. */
  first(): Entry | undefined {
    return this.entries[0];
  }

  nowMs(): number {
    return this.runtime.monoMs();
  }

  /** Puts an entry in, or moves it. */
  set(entry: Entry, atMonoMs: number): void {
    entry.dueMonoMs = atMonoMs;
    if (entry.dueIndex < 0) {
      entry.dueIndex = this.entries.length;
      this.entries.push(entry);
      this.timesMs.push(atMonoMs);
      this.rise(entry, entry.dueIndex);
    } else {
      this.rise(entry, entry.dueIndex);
      this.sink(entry, entry.dueIndex);
    }
    if (atMonoMs < this.timerAtMonoMs) this.arm(atMonoMs);
  }

  /** Takes an entry out; safe when it is in none. */
  remove(entry: Entry): void {
    const index = entry.dueIndex;
    if (index < 0) return;
    entry.dueIndex = -1;
    const last = this.entries.pop() as Entry;
    this.timesMs.pop();
    if (last !== entry) {
      last.dueIndex = index;
      this.entries[index] = last;
      this.rise(last, index);
      this.sink(last, last.dueIndex);
    }
    if (this.keepAlive && this.entries.length === 0) this.disarm();
  }

  private rise(entry: Entry, from: number): void {
    const { timesMs } = this;
    const timeMs = entry.dueMonoMs;
    let index = from;
    while (index > 0) {
      const parentIndex = (index - 1) >> 1;
      if ((timesMs[parentIndex] as number) <= timeMs) break;
      this.move(parentIndex, index);
      index = parentIndex;
    }
    this.put(entry, index);
  }

  private sink(entry: Entry, from: number): void {
    const { timesMs } = this;
    const { length } = timesMs;
    const timeMs = entry.dueMonoMs;
    let index = from;
    for (;;) {
      let childIndex = 2 * index + 1;
      if (childIndex >= length) break;
      const right = childIndex + 1;
      if (right < length && (timesMs[right] as number) < (timesMs[childIndex] as number)) {
        childIndex = right;
      }
      if ((timesMs[childIndex] as number) >= timeMs) break;
      this.move(childIndex, index);
      index = childIndex;
    }
    this.put(entry, index);
  }

  private move(from: number, to: number): void {
    const entry = this.entries[from] as Entry;
    this.entries[to] = entry;
    this.timesMs[to] = this.timesMs[from] as number;
    entry.dueIndex = to;
  }

  private put(entry: Entry, index: number): void {
    this.entries[index] = entry;
    this.timesMs[index] = entry.dueMonoMs;
    entry.dueIndex = index;
  }

  private arm(atMonoMs: number): void {
    this.timer?.cancel();
    this.timerAtMonoMs = atMonoMs;
    // At most a day at a time: longer delays overflow the timers of Node.
    const delayMs = Math.min(86_400_000, Math.max(1, Math.ceil(atMonoMs - this.nowMs())));
    this.timer = this.runtime.timer(delayMs, this.keepAlive, () => this.tick());
  }

  private disarm(): void {
    this.timer?.cancel();
    this.timer = undefined;
    this.timerAtMonoMs = Number.POSITIVE_INFINITY;
  }

  private tick(): void {
    this.timer = undefined;
    // Everything armed while draining would be armed again below.
    this.timerAtMonoMs = Number.NEGATIVE_INFINITY;
    this.drain(this);
    this.timerAtMonoMs = Number.POSITIVE_INFINITY;
    const first = this.entries[0];
    if (first !== undefined) this.arm(first.dueMonoMs);
  }
}

function drainAll<Entry extends Due>(heap: DueHeap<Entry>): void {
  const nowMs = heap.nowMs();
  for (let entry = heap.first(); entry !== undefined; entry = heap.first()) {
    if (entry.dueMonoMs > nowMs) return;
    heap.remove(entry);
    entry.onDue(nowMs);
  }
}
