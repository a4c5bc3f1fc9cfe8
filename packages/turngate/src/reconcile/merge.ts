/** Three ordered streams walked together, one key at a time; nothing is held but the key at hand. */
import { TurngateError } from '../core/errors.ts';
import {
  compareLines,
  type Group,
  type Line,
  type LinePlace,
  type LineSource,
  type Side,
} from './line.ts';

/** A key with more lines than this on one side is not matched but reported. */
export const groupLinesMax = 1_000;

/** Reads one side line by line, batch by batch, and insists on its order. */
class Cursor {
  line: Line | undefined;
  private readonly side: Side;
  private readonly batches: AsyncIterator<readonly Line[]>;
  private batch: readonly Line[] = [];
  private at = 0;

  constructor(side: Side, source: LineSource) {
    this.side = side;
    this.batches = source[Symbol.asyncIterator]();
  }

  /** Moves on; true when it had to stop for the next batch, which `refill` then brings. */
  advance(): boolean {
    if (this.at >= this.batch.length) return true;
    this.take(this.batch[this.at++] as Line);
    return false;
  }

  /** False at the end. */
  async refill(): Promise<boolean> {
    const before = this.line;
    do {
      const next = await this.batches.next();
      if (next.done === true) {
        this.line = undefined;
        return false;
      }
      this.batch = next.value;
      this.at = 0;
    } while (this.batch.length === 0);
    this.line = before;
    this.take(this.batch[this.at++] as Line);
    return true;
  }

  async close(): Promise<void> {
    await this.batches.return?.();
  }

  private take(line: Line): void {
    if (this.line !== undefined && compareLines(this.line, line) > 0) {
      const message = `the ${this.side} side is not in bytewise order of kind and key`;
      throw new TurngateError('OPTION_INVALID', message);
    }
    this.line = line;
  }
}

/** Yields groups in key order. A source that is out of order ends it with OPTION_INVALID. */
export async function* mergeSides(
  sides: Readonly<Record<Side, LineSource>>,
): AsyncGenerator<readonly Group[]> {
  const order = new Cursor('order', sides.order);
  const flow = new Cursor('flow', sides.flow);
  const bill = new Cursor('bill', sides.bill);
  const cursors = [order, flow, bill];
  let groups: Group[] = [];
  try {
    for (const cursor of cursors) await cursor.refill();
    for (;;) {
      const place = lowest(cursors);
      if (place === undefined) break;
      const group = {
        kind: place.kind,
        key: place.key,
        order: sync(order, place) ?? (await rest(order, place)),
        flow: sync(flow, place) ?? (await rest(flow, place)),
        bill: sync(bill, place) ?? (await rest(bill, place)),
      };
      groups.push(group);
      if (groups.length < 1_000) continue;
      yield groups; // In batches: one promise per thousand keys, not per key.
      groups = [];
    }
    if (groups.length > 0) yield groups;
  } finally {
    for (const cursor of cursors) await cursor.close();
  }
}

const none: readonly Line[] = [];

/** The lines at a place when they all are in the batch at hand: the common case, no promise. */
function sync(cursor: Cursor, place: LinePlace): readonly Line[] | undefined {
  const first = cursor.line;
  if (first === undefined || first.kind !== place.kind || first.key !== place.key) return none;
  const lines = [first];
  pending.set(cursor, lines);
  for (;;) {
    if (cursor.advance()) return undefined;
    const { line } = cursor;
    if (line === undefined || line.kind !== place.kind || line.key !== place.key) return lines;
    lines.push(line);
  }
}

const pending = new WeakMap<Cursor, Line[]>();

/** The same over the border of a batch. */
async function rest(cursor: Cursor, place: LinePlace): Promise<readonly Line[]> {
  const lines = pending.get(cursor) as Line[];
  while (await cursor.refill()) {
    for (;;) {
      const { line } = cursor;
      if (line === undefined || line.kind !== place.kind || line.key !== place.key) return lines;
      lines.push(line);
      if (cursor.advance()) break;
    }
  }
  return lines;
}

function lowest(cursors: readonly Cursor[]): LinePlace | undefined {
  let found: Line | undefined;
  for (const { line } of cursors) {
    if (line !== undefined && (found === undefined || compareLines(line, found) < 0)) found = line;
  }
  return found;
}
