/** The response headers that tell a repeat from a first. */
import type { Outcome } from '../idempotency/outcome.ts';

/** For a replay: `Idempotent-Replayed: true` (Stripe's name) and when the first was processed. */
export function replayHeaders(outcome: Omit<Outcome<unknown>, 'value'>): Record<string, string> {
  if (!outcome.replayed) return {};
  return {
    'Idempotent-Replayed': 'true',
    'Idempotency-First-Processed-At': outcome.firstProcessedAt.toISOString(),
  };
}
