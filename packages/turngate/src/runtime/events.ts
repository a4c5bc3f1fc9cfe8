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
    | { readonly type: 'started' }
    | { readonly type: 'ended' }
  );

/** Events about locks. */
export type LockEvent = { readonly lock: string; readonly store: string } & (
  | { readonly type: 'acquired'; readonly waitMs: number; readonly fence: bigint | undefined }
  | { readonly type: 'busy'; readonly waitMs: number }
  | { readonly type: 'released'; readonly holdMs: number; readonly result: string }
  | { readonly type: 'lost'; readonly holdMs: number; readonly reason: string }
  | { readonly type: 'renewal-failed'; readonly error: unknown }
  | { readonly type: 'release-failed'; readonly error: unknown }
);

/** Events about state machines. */
export interface FlowEvent {
  readonly type: 'applied' | 'already' | 'refused' | 'missing';
  readonly flow: string;
  readonly event: string;
  readonly id: string;
}

const channels = {
  idempotency: channel('turngate:idempotency'),
  lock: channel('turngate:lock'),
  flow: channel('turngate:flow'),
} satisfies Record<string, Channel>;

/** The event families and what they carry. */
export interface EventFamilies {
  readonly idempotency: IdempotencyEvent;
  readonly lock: LockEvent;
  readonly flow: FlowEvent;
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
