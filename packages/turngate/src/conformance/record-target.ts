/** What the record laws are proved on, and the small helpers they share. */
import assert from 'node:assert/strict';
import type { Attempt, Claim, RecordStore, Work } from '../contract/record-store.ts';
import type { RecordId } from '../core/record-id.ts';
import { systemRuntime } from '../runtime/runtime.ts';

/** A record store and a business table beside it. */
export interface RecordStoreTarget<Tx> {
  readonly name: string;
  /** Called once per law. May give the same store each time: every law uses keys of its own. */
  open(): Promise<RecordStore<Tx>>;
  /** The business effect: writes one line through the transaction. */
  write(tx: Tx, line: string): Promise<void>;
  /** The committed lines that start with `prefix`, read outside any transaction of the law. */
  written(prefix: string): Promise<readonly string[]>;
  /** A transaction of the caller: commits when `body` resolves, rolls back when it rejects. */
  ownTransaction<T>(body: (tx: Tx) => Promise<T>): Promise<T>;
  /** Lets time pass on the store's clock. */
  passTime(ms: number): Promise<void>;
  /**
   * Why work and record are not one transaction here; undefined when they are. Then `write` takes effect
   * at once, `ownTransaction` is never called, and other laws hold instead.
   */
  readonly notAtomic?: string;
  /** Why there is nothing to purge; undefined when there is. */
  readonly selfPurging?: string;
  /** Why the store has no part for operators; undefined when it has. */
  readonly noAdmin?: string;
  /** Why a handle of an ended transaction is not recognised here; undefined when it is. */
  readonly endedUnseen?: string;
  /** Why two transactions cannot be open at once here; undefined when they can. */
  readonly oneSession?: string;
}

/** A target without its transaction type, as laws see it. */
export type AnyRecordTarget = RecordStoreTarget<unknown>;

const hourMs = 3_600_000;

/** An identity nobody has used. */
export function freshId(parts: Partial<RecordId> = {}): RecordId {
  return { operation: 'law.test', scope: '-', key: systemRuntime.randomId(), ...parts };
}

/** A claim of a new attempt at an identity. */
export function claimOf(id: RecordId, parts: Partial<Omit<Claim, 'id'>> = {}): Claim {
  const owner = systemRuntime.randomId();
  return { id, fingerprint: '1.payload', owner, retentionMs: hourMs, ...parts };
}

/** Work that writes `line` and gives `result`. */
export function writing(target: AnyRecordTarget, line: string, result = '1"done"'): Work<unknown> {
  return async (tx) => {
    await target.write(tx, line);
    return { state: 'done', result };
  };
}

/** Work that must not be reached. */
export const neverRuns: Work<unknown> = async () => {
  throw new Error('this work must not run');
};

/** A door that work waits behind until the law opens it. */
export function door(): { readonly opened: Promise<void>; open(): void } {
  let open!: () => void;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** An attempt whose work has written and is now uncommitted, until `finish` is called. */
export async function startRunning(
  target: AnyRecordTarget,
  store: RecordStore<unknown>,
  claim: Claim,
): Promise<{ finish(error?: Error): Promise<Attempt> }> {
  const started = door();
  const held = door();
  let failure: Error | undefined;
  const attempt = store.attempt(claim, async (tx) => {
    await target.write(tx, claim.id.key);
    started.open();
    await held.opened;
    if (failure !== undefined) throw failure;
    return { state: 'done', result: '1"done"' };
  });
  await Promise.race([started.opened, attempt]);
  return {
    finish(error) {
      failure = error;
      held.open();
      return attempt;
    },
  };
}

/** Narrows an attempt to the kind a law expects. */
export function expectKind<Answer extends { kind: string }, Kind extends Answer['kind']>(
  answer: Answer,
  kind: Kind,
): Extract<Answer, { kind: Kind }> {
  assert.equal(answer.kind, kind);
  return answer as Extract<Answer, { kind: Kind }>;
}
