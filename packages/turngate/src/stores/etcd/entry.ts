/** What this process knows of one attempt: its lease, its place, its grant. */
import type { LockAttempt } from '../../contract/lock-store.ts';

/** One attempt at one name; lives from its lease to its release, lapse or loss. */
export class Entry {
  readonly name: string;
  readonly owner: string;
  leaseId: string;
  /** Life of the lease on the server. */
  ttlMs: number;
  /** Creation of our key: the place in the queue, and later the fence. */
  revision: string | undefined;
  held = false;
  deadlineMonoMs = 0;

  constructor({ name, owner }: LockAttempt, leaseId: string, ttlMs: number) {
    this.name = name;
    this.owner = owner;
    this.leaseId = leaseId;
    this.ttlMs = ttlMs;
  }
}
