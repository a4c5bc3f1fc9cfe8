/** Rows of staged operations as records; clients differ in how they give a 64-bit integer. */
import type {
  OnUnknown,
  StagedRecord,
  StagedState,
  StagedStep,
  StepKind,
} from '../../contract/staged-store.ts';

type Row = Record<string, unknown>;

/** A row of turngate_staged. */
export function recordOf(row: Row): StagedRecord {
  const expiresAtMs = optional(row['expires_at'], Number);
  const state = String(row['state']) as StagedState;
  const finished = state === 'done' || state === 'refused';
  return {
    id: {
      operation: asText(row['operation']),
      scope: asText(row['scope']),
      key: asText(row['record_key']),
    },
    state,
    fingerprint: asText(row['fingerprint']),
    input: asText(row['input']),
    owner: asText(row['owner']),
    attempt: Number(row['attempt']),
    failures: Number(row['failures']),
    promised: Number(row['promised']) === 1,
    result: optional(row['result'], asText),
    error: optional(row['error'], asText),
    dueInMs: optional(row['due_in'], Number),
    startedAtMs: Number(row['started_at']),
    expiresAtMs,
    expired: finished && expiresAtMs !== undefined && expiresAtMs <= Number(row['now_at']),
  };
}

/** A row of turngate_step. */
export function stepOf(row: Row): StagedStep {
  return {
    name: asText(row['name']),
    seq: Number(row['seq']),
    kind: asText(row['kind']) as StepKind,
    state: asText(row['state']) as StagedStep['state'],
    onUnknown: asText(row['on_unknown']) as OnUnknown,
    fingerprint: optional(row['fingerprint'], asText),
    attempt: Number(row['attempt']),
    result: optional(row['result'], asText),
    dueInMs: optional(row['due_in'], Number),
    startedAtMs: Number(row['started_at']),
  };
}

/** Binary columns (MySQL's byte-wise keys) may come as bytes. */
export function asText(value: unknown): string {
  return value instanceof Uint8Array ? Buffer.from(value).toString('utf8') : String(value);
}

function optional<T>(value: unknown, read: (value: unknown) => T): T | undefined {
  return value === null || value === undefined ? undefined : read(value);
}
