/**
 * What happened, as typed events on diagnostics channels: one channel per family, no cost when
 * nobody listens. Metrics, logs and traces are ordinary subscribers.
 *
 * Events carry the key so that a subscriber in the same process can decide what to log;
 * `keyDigest()` gives the form that may leave it. They never carry payloads or results.
 */
import { type Channel, channel } from 'node:diagnostics_channel';

/** Where a repeat was stopped or answered. */
export type AnsweredFrom = 'memory' | 'flight' | 'record';

interface IdempotencyFact {
  readonly operation: string;
  readonly scope: string;
  readonly key: string;
}

/** Events about idempotency records. */
export type IdempotencyEvent = IdempotencyFact &
  (
    | { readonly type: 'first'; readonly durationMs: number }
    | { readonly type: 'replayed'; readonly from: AnsweredFrom; readonly firstProcessedAt: Date }
    | { readonly type: 'duplicate-refused'; readonly firstProcessedAt: Date }
    | { readonly type: 'in-progress'; readonly from: 'flight' | 'store' }
    | { readonly type: 'waiting'; readonly from: 'flight' | 'store' }
    | { readonly type: 'key-reused'; readonly from: AnsweredFrom | 'store' }
    | { readonly type: 'refused'; readonly refusal: string }
    | { readonly type: 'released'; readonly error: unknown }
    | { readonly type: 'conflict-retried'; readonly attempt: number; readonly error: unknown }
    | { readonly type: 'commit-unknown'; readonly error: unknown }
    | { readonly type: 'commit-settled'; readonly committed: boolean }
    | { readonly type: 'unprotected'; readonly error: unknown }
    | { readonly type: 'started' }
    | { readonly type: 'ended' }
    /** A setting of the store's server endangers records; the identity is the one that was asked for. */
    | { readonly type: 'store-warning'; readonly warning: string }
    /** The keys of this operation look like something that is no key; once per operation. */
    | { readonly type: 'key-advice'; readonly advice: string }
  );

/** What was measured about one name in this process. */
export interface LockMeasure {
  readonly holdP99Ms: number;
  /** Share of the recent holds that somebody waited for, 0 to 1. */
  readonly contendedShare: number;
  readonly leaseMs: number;
}

/** Events about locks. */
export type LockEvent = { readonly lock: string; readonly store: string } & (
  | { readonly type: 'acquired'; readonly waitMs: number; readonly fence: bigint | undefined }
  | { readonly type: 'busy'; readonly waitMs: number }
  | { readonly type: 'released'; readonly holdMs: number; readonly result: string }
  | { readonly type: 'lost'; readonly holdMs: number; readonly reason: string }
  | { readonly type: 'renewal-failed'; readonly error: unknown }
  | { readonly type: 'release-failed'; readonly error: unknown }
  /** Held for more than half of a lease that is not renewed: a longer lease, or renewal. */
  | ({ readonly type: 'lease-short' } & LockMeasure)
  /** More than half of the holds were waited for: the name may be too coarse. */
  | ({ readonly type: 'hot' } & LockMeasure)
  /** A setting of the store's server endangers locks; `lock` is empty. */
  | { readonly type: 'store-warning'; readonly warning: string }
);

/** Events about staged operations. */
export type StagedEvent = IdempotencyFact & { readonly attempt: number } & (
    | { readonly type: 'claimed' | 'taken-over' | 'finished' | 'lease-lost' }
    | { readonly type: 'step-done'; readonly step: string; readonly durationMs: number }
    | { readonly type: 'suspended'; readonly wakeInMs: number }
    /** Failed before anything outside began: the key is free. */
    | { readonly type: 'released'; readonly error: unknown }
    /** Failed with effects under way: it will be tried again. */
    | { readonly type: 'postponed'; readonly error: unknown; readonly retryInMs: number }
    | { readonly type: 'indeterminate'; readonly step: string; readonly error: unknown }
    /** Needs an operator. */
    | { readonly type: 'parked'; readonly error: unknown }
    | { readonly type: 'sweep-failed'; readonly error: unknown }
  );

/** Events about state machines. */
export interface FlowEvent {
  readonly type: 'applied' | 'already' | 'refused' | 'missing';
  readonly flow: string;
  readonly event: string;
  readonly id: string;
}

/** What happened to a run of a job. */
export interface JobEvent {
  readonly type: 'started' | 'done' | 'failed' | 'unavailable';
  readonly job: string;
  readonly period?: string;
  readonly fence?: bigint;
  readonly error?: unknown;
}

/** What happened to a message. Payloads and ids never travel in events. */
export interface MessageEvent {
  readonly type:
    | 'applied'
    | 'duplicate'
    | 'parked'
    | 'too-old'
    | 'consume-failed'
    | 'publish-failed'
    | 'relay-failed'
    /** A delivery without a usable id went to the dead letters. */
    | 'unidentified'
    /** A broker or its connection ended a consumer. */
    | 'consumer-lost';
  readonly consumer?: string;
  readonly source?: string;
  readonly topic?: string;
  readonly sequence?: number;
  readonly error?: unknown;
}

/** What happened to a saga or one of its branches. */
export interface SagaEvent {
  readonly type: string;
  readonly saga?: string;
  readonly branch?: string;
  readonly fence?: bigint;
  readonly error?: unknown;
}

const channels = {
  idempotency: channel('turngate:idempotency'),
  lock: channel('turngate:lock'),
  flow: channel('turngate:flow'),
  staged: channel('turngate:staged'),
  job: channel('turngate:job'),
  message: channel('turngate:message'),
  saga: channel('turngate:saga'),
} satisfies Record<string, Channel>;

/** The event families and what they carry. */
export interface EventFamilies {
  readonly idempotency: IdempotencyEvent;
  readonly lock: LockEvent;
  readonly flow: FlowEvent;
  readonly staged: StagedEvent;
  readonly job: JobEvent;
  readonly message: MessageEvent;
  readonly saga: SagaEvent;
}

/** Does anybody listen? Ask before building an event on a hot path. */
export function listened(family: keyof EventFamilies): boolean {
  return channels[family].hasSubscribers;
}

/** Tells all subscribers. A subscriber that throws is reported by Node, never to our caller. */
export function emit<Family extends keyof EventFamilies>(
  family: Family,
  event: EventFamilies[Family],
): void {
  if (channels[family].hasSubscribers) channels[family].publish(event);
}

/**
 * Listens to one family of events; the returned function stops it. Listeners run synchronously
 * inside the call they observe: keep them short.
 */
export function onEvent<Family extends keyof EventFamilies>(
  family: Family,
  listener: (event: EventFamilies[Family]) => void,
): () => void {
  const receive = (message: unknown): void => listener(message as EventFamilies[Family]);
  channels[family].subscribe(receive);
  return () => {
    channels[family].unsubscribe(receive);
  };
}
