/**
 * Names of the nodes in a queue: `owner~leaseMs~sequence`. The owner finds a node again whose create
 * reply was lost; the lease tells others how long it may take; the sequence is the order.
 */
import { pathSegment, textOfSegment } from '../../core/path-segment.ts';

/** A child of a lock's directory. */
export interface QueueNode {
  readonly child: string;
  readonly owner: string;
  readonly leaseMs: number;
  readonly sequence: number;
}

/** What to create; ZooKeeper appends the sequence. */
export function nodePrefix(owner: string, leaseMs: number): string {
  return `${pathSegment(owner)}~${leaseMs}~`;
}

/** The nodes in the order of the queue. Children that are not ours are left out. */
export function inOrder(children: readonly string[]): QueueNode[] {
  const nodes: QueueNode[] = [];
  for (const child of children) {
    const match = /^([^~]*)~(\d+)~(-?\d+)$/.exec(child);
    if (match === null) continue;
    const [, owner = '', leaseMs, sequence] = match;
    nodes.push({
      child,
      owner: textOfSegment(owner),
      leaseMs: Number(leaseMs),
      sequence: Number(sequence),
    });
  }
  // The sequence is a 32-bit counter that wraps: the difference tells who is older.
  return nodes.sort((a, b) => (a.sequence - b.sequence) | 0);
}
