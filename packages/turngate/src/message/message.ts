/** A message as the library sees it, whatever broker carries it. */

/** What travels. The id never changes, over all repeats. */
export interface Message {
  /** Unique in its source, for ever: what consumers recognise a repeat by. */
  readonly id: string;
  readonly topic: string;
  /** Messages of one key keep their order; undefined: no order is asked for. */
  readonly key: string | undefined;
  /** Position within the key, from 1 without gaps; undefined without a key. */
  readonly sequence: number | undefined;
  /** JSON text. */
  readonly payload: string;
  readonly headers: Readonly<Record<string, string>>;
  /** When it was written, epoch milliseconds of the writer's database. */
  readonly createdMs: number;
}

/** Sends one message; resolves only after the broker has taken responsibility for it. */
export interface Publisher {
  publish(message: Message): Promise<void>;
}

/** Names that brokers and databases both take. */
export const namePattern = /^[A-Za-z0-9._:/-]{1,128}$/;
