/** Prometheus metrics from Turngate's events. No key, user or order ever becomes a label. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { type IdempotencyEvent, type LockEvent, onEvent } from 'turngate';
import { causeOf } from './cause.ts';

/** The registry and how to stop feeding it. */
export interface Metrics {
  readonly registry: Registry;
  stop(): void;
}

const secondsBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Starts listening. */
export function startMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const stops = [
    onEvent('idempotency', idempotencyMetrics(registry)),
    onEvent('lock', lockMetrics(registry)),
  ];
  return {
    registry,
    stop: () => {
      for (const stop of stops) stop();
    },
  };
}

function idempotencyMetrics(registry: Registry): (event: IdempotencyEvent) => void {
  const registers = [registry];
  const claims = new Counter({
    name: 'turngate_idempotency_claims_total',
    help: 'Calls of an operation by how they were answered',
    labelNames: ['operation', 'outcome'],
    registers,
  });
  const interceptions = new Counter({
    name: 'turngate_idempotency_interceptions_total',
    help: 'Repeats that were kept from running, by operation and cause',
    labelNames: ['operation', 'cause'],
    registers,
  });
  const inProgress = new Gauge({
    name: 'turngate_idempotency_in_progress',
    help: 'Keys being worked on in this process',
    labelNames: ['operation'],
    registers,
  });
  const duration = new Histogram({
    name: 'turngate_idempotency_execute_duration_seconds',
    help: 'Time of first calls, waiting included',
    labelNames: ['operation'],
    buckets: secondsBuckets,
    registers,
  });
  return (event) => {
    const { operation } = event;
    const outcome = outcomes[event.type];
    if (outcome !== undefined) claims.inc({ operation, outcome });
    const cause = causeOf(event);
    if (cause !== undefined) interceptions.inc({ operation, cause });
    if (event.type === 'started') inProgress.inc({ operation });
    else if (event.type === 'ended') inProgress.dec({ operation });
    else if (event.type === 'first') duration.observe({ operation }, event.durationMs / 1_000);
  };
}

const outcomes: Partial<Record<IdempotencyEvent['type'], string>> = {
  first: 'first',
  replayed: 'replayed',
  'duplicate-refused': 'duplicate',
  'in-progress': 'in_progress',
  'key-reused': 'mismatch',
  refused: 'refused',
  released: 'error',
};

function lockMetrics(registry: Registry): (event: LockEvent) => void {
  const registers = [registry];
  const labelNames = ['store', 'outcome'];
  const wait = new Histogram({
    name: 'turngate_lock_wait_duration_seconds',
    help: 'Time from asking for a lock to getting it or giving up',
    labelNames,
    buckets: secondsBuckets,
    registers,
  });
  const hold = new Histogram({
    name: 'turngate_lock_hold_duration_seconds',
    help: 'Time from getting a lock to letting go or losing it',
    labelNames,
    buckets: secondsBuckets,
    registers,
  });
  const lost = new Counter({
    name: 'turngate_lock_lost_total',
    help: 'Locks lost while held',
    labelNames: ['store', 'reason'],
    registers,
  });
  return (event) => {
    const { store } = event;
    if (event.type === 'acquired')
      wait.observe({ store, outcome: 'acquired' }, event.waitMs / 1_000);
    else if (event.type === 'busy')
      wait.observe({ store, outcome: 'timeout' }, event.waitMs / 1_000);
    else if (event.type === 'released') {
      hold.observe({ store, outcome: event.result }, event.holdMs / 1_000);
    } else if (event.type === 'lost') {
      hold.observe({ store, outcome: 'lost' }, event.holdMs / 1_000);
      lost.inc({ store, reason: event.reason });
    }
  };
}
