/** What this process knows of one attempt: its node, and whether it waits or holds. */
import type { LockAttempt } from '../../contract/lock-store.ts';
import type { Connection } from './sessions.ts';

/** One attempt at one name; lives from its first create to its release, lapse or loss. */
export class Entry {
  readonly name: string;
  readonly owner: string;
  readonly connection: Connection;
  /** Undefined while the answer to the create is unknown: then it is looked up by its owner. */
  path: string | undefined;
  /** The node in front of ours, whose end is our turn; our own node while we hold. */
  ahead: string | undefined;
  fence: bigint | undefined;
  deadlineMonoMs = 0;
  constructor(attempt: LockAttempt, connection: Connection) {
    this.name = attempt.name;
    this.owner = attempt.owner;
    this.connection = connection;
  }

  get held(): boolean {
    return this.fence !== undefined;
  }
}
