/** The nodes of a lock: one directory per name, one child per attempt. */
import type { LockAttempt } from '../../contract/lock-store.ts';
import { pathSegment } from '../../core/path-segment.ts';
import { int64, zkCode } from './client.ts';
import { inOrder, nodePrefix, type QueueNode } from './queue-node.ts';
import { isZk, type Session } from './session.ts';
import type { Connection } from './sessions.ts';

/** Directories that vanish under us, places that lapse while we look. */
export const raceMax = 20;

/** Reads and changes the queues under one root. */
export class Directory {
  private readonly root: string;

  constructor(root: string) {
    this.root = root;
  }

  path(name: string, child: string): string {
    return `${this.of(name)}/${child}`;
  }

  async queue(session: Session, name: string): Promise<QueueNode[]> {
    return inOrder(await session.children(this.of(name)));
  }

  /** Joins the queue; gives the path of the node. */
  async join(session: Session, attempt: LockAttempt): Promise<string> {
    const directory = this.of(attempt.name);
    const prefix = `${directory}/${nodePrefix(attempt.owner, attempt.leaseMs)}`;
    for (let race = 0; ; race++) {
      try {
        return await session.createPlace(prefix);
      } catch (error) {
        // Whoever left last took the directory away.
        if (!isZk(error, zkCode.noNode) || race >= raceMax) throw error;
        await session.createDirectory(directory);
      }
    }
  }

  /** The node a lost reply may have left. A dying node of an earlier session is not ours. */
  async findOwn(
    session: Session,
    { name, owner }: LockAttempt,
    nodes: readonly QueueNode[],
  ): Promise<string | undefined> {
    for (const node of nodes) {
      if (node.owner !== owner) continue;
      const path = this.path(name, node.child);
      const stat = await session.exists(path);
      if (stat !== null && int64(stat.ephemeralOwner) === session.id) return path;
    }
    return undefined;
  }

  /** Leaves the queue. If that fails it goes on in the background until node or session is gone. */
  async leave({ session, departures }: Connection, name: string, path: string): Promise<boolean> {
    let removed: boolean;
    try {
      removed = await session.remove(path);
    } catch (error) {
      this.leaveSurely({ session, departures }, name, path);
      throw error;
    }
    this.tidy(session, name);
    departures.gone(path);
    return removed;
  }

  /** Leaves the queue without anybody waiting for it. */
  leaveSurely({ session, departures }: Connection, name: string, path: string): void {
    session.removeSurely(path, () => {
      this.tidy(session, name);
      departures.gone(path);
    });
  }

  /** Removes the directory of a free name. It is refused while somebody is in it: that is fine. */
  tidy(session: Session, name: string): void {
    session.remove(this.of(name)).catch(() => {});
  }

  private of(name: string): string {
    return `${this.root}/${pathSegment(name)}`;
  }
}
