/** What the broker laws need from a broker under test. */
import type { Inbox } from '../../src/message/inbox.ts';
import type { Publisher } from '../../src/message/message.ts';
import type { MessageEffect } from '../../src/message/receiving.ts';

/** The consumer side of a test. */
export interface TestConsumer {
  /** The orderly end. */
  stop(): Promise<void>;
  /** The connection is gone, nothing was acknowledged, nobody is told. */
  crash(): Promise<void>;
}

/** One queue, stream or subject on a broker of its own. */
export interface Rig {
  readonly publisher: Publisher;
  /** `ordered`: with the settings that keep order. */
  consume(
    inbox: Inbox<unknown>,
    effect: MessageEffect<unknown>,
    ordered?: boolean,
  ): Promise<TestConsumer>;
  /** Sends a message that carries no id. */
  sendNameless(): Promise<void>;
  /** How many messages are where dead ones go. */
  deadCount(): Promise<number>;
  /** Messages that are neither acknowledged nor dead. */
  openCount(): Promise<number>;
  /** SIGKILL to the broker and a start on the same data. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

/** A kind of broker. */
export interface BrokerKind {
  readonly name: string;
  /** Program of its server. */
  readonly program: string;
  /** Why this broker cannot keep order; undefined: it does. */
  readonly unordered?: string;
  /** `topic` is fresh for each test. */
  open(topic: string): Promise<Rig>;
  start(): Promise<void>;
  stop(): Promise<void>;
}
