/** What kept a repeat from running, in the words of both logs and metrics. */
import type { IdempotencyEvent } from 'turngate';

/** Why a repeat was stopped or answered without running; undefined for everything else. */
export function causeOf(event: IdempotencyEvent): string | undefined {
  switch (event.type) {
    case 'replayed':
      return `replayed_from_${event.from}`;
    case 'duplicate-refused':
      return 'duplicate_refused';
    case 'in-progress':
      return 'in_progress';
    case 'key-reused':
      return 'key_reused';
    default:
      return undefined;
  }
}
