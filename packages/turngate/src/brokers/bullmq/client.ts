/** The slice of BullMQ (6.x) that is called. Nothing of it is imported. */

/** A `Queue`. */
export interface BullmqQueue {
  // biome-ignore lint/suspicious/noExplicitAny: client edge.
  add(name: string, data: any, options: any): Promise<unknown>;
}

/** A `Job` as a processor gets it. */
export interface BullmqJob {
  readonly name: string;
  readonly queueName: string;
  // biome-ignore lint/suspicious/noExplicitAny: whatever was added.
  readonly data: any;
  /** How often a worker has begun it, this time included. */
  readonly attemptsStarted?: number;
}
