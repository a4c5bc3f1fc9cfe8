/** Log lines that tell a first from a repeat, with operation, key and cause. Never a payload. */
import { onEvent } from 'turngate';
import { causeOf } from './cause.ts';

interface Log {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
}

/** Starts logging Turngate's events; the returned function stops it. */
export function logEvents(log: Log): () => void {
  const stops = [
    onEvent('idempotency', (event) => {
      const { operation, scope, key } = event;
      const cause = causeOf(event);
      if (event.type === 'first')
        log.info({ operation, scope, key, durationMs: Math.round(event.durationMs) }, 'first');
      else if (cause !== undefined) log.info({ operation, scope, key, cause }, 'repeat');
      else if (event.type === 'released') {
        const { code, message } = event.error as { code?: unknown; message?: string };
        log.info({ operation, scope, key, cause: code ?? message }, 'failed: key is free again');
      } else if (event.type === 'commit-unknown' || event.type === 'commit-settled') {
        log.warn(
          { operation, scope, key, committed: 'committed' in event ? event.committed : undefined },
          event.type,
        );
      }
    }),
    onEvent('lock', (event) => {
      if (event.type === 'lost') log.warn({ lock: event.lock, cause: event.reason }, 'lock lost');
    }),
  ];
  return () => {
    for (const stop of stops) stop();
  };
}
