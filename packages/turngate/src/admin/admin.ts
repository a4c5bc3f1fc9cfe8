/** What an operator may see and do, over the contracts of the stores; every act leaves a line. */
import type { LockState, LockStore } from '../contract/lock-store.ts';
import type {
  ListedRecord,
  RecordAdmin,
  RecordFilter,
  RecordPage,
} from '../contract/record-store.ts';
import type {
  StagedFilter,
  StagedRecord,
  StagedStep,
  StagedVerdict,
} from '../contract/staged-store.ts';
import { decodeResult, encodeResult } from '../core/codec.ts';
import { knownOptions, optionError } from '../core/option.ts';
import type { RecordId } from '../core/record-id.ts';
import { systemRuntime } from '../runtime/runtime.ts';
import {
  type ActAnswer,
  type ActParts,
  actApart,
  actWith,
  checkActor,
  checkReason,
} from './acts.ts';
import type { AuditFilter, AuditLog, AuditPage } from './audit.ts';
import type { AdminRecordStore, AdminStagedStore } from './stores.ts';

/** Options of {@link createAdmin}. */
export interface AdminOptions {
  /** The record store, like `postgres(pool)`. Needed for `records`. */
  readonly records?: AdminRecordStore;
  /** The staged store, like `postgresStaged(pool)`. Needed for `staged`; sagas and TCC live there too. */
  readonly staged?: AdminStagedStore;
  /** The lock store. Needed for `locks`. */
  readonly locks?: LockStore;
  /** Where acts are written down: `sqlAudit(postgresDatabase(pool))`. */
  readonly audit: AuditLog;
  /** Who acts: a person, not a role. 1 to 255 bytes. `as` gives the same admin for another one. */
  readonly actor: string;
}

/** What may be shown besides the facts. */
export interface ShowOptions {
  /**
   * Show inputs, results and errors, decoded. They are business data: leave it out unless it is needed.
   *
   * @default false
   */
  readonly payload?: boolean;
}

/** A record as it is shown; `result` only with `payload`, and undefined when it was dropped early. */
export interface ShownRecord extends ListedRecord {
  readonly result?: unknown;
}

/** A staged operation as it is shown; the payload parts only when asked for. */
export interface ShownStaged
  extends Omit<StagedRecord, 'input' | 'result' | 'error' | 'owner' | 'fingerprint'> {
  readonly input?: unknown;
  readonly result?: unknown;
  readonly error?: string | undefined;
}

/** A step as it is shown. */
export interface ShownStep extends Omit<StagedStep, 'result' | 'fingerprint'> {
  readonly result?: unknown;
}

/** Records of atomic operations. */
export interface RecordsAdmin {
  /** A page, in the order of the store, expired ones that are not purged yet included. */
  list(filter?: Omit<RecordFilter, 'limit'> & { readonly limit?: number }): Promise<RecordPage>;
  /** One record; undefined when there is none. */
  inspect(id: RecordId, options?: ShowOptions): Promise<ShownRecord | undefined>;
  /**
   * Deletes a finished record, so that *the key runs again*: only after a look at what it has done.
   * Running work is not touched. A process that has the result in memory goes on answering from there
   * until it forgets it, at most for half of the retention: restart it, or wait.
   */
  release(id: RecordId, reason: string): Promise<'done' | 'missing'>;
  /** Deletes expired records in small batches now; returns how many went. */
  purge(
    reason: string,
    limit?: { readonly batchRows: number; readonly batches: number },
  ): Promise<number>;
}

/** Staged operations, sagas and TCC transactions. */
export interface StagedAdmin {
  /** A page in a fixed order. */
  list(filter?: Omit<StagedFilter, 'limit'> & { readonly limit?: number }): Promise<{
    readonly records: readonly ShownStaged[];
    readonly cursor: string | undefined;
  }>;
  /** The operation and its steps in order; undefined when there is none. */
  inspect(
    id: RecordId,
    options?: ShowOptions,
  ): Promise<{ readonly record: ShownStaged; readonly steps: readonly ShownStep[] } | undefined>;
  /** Ready at once, failures counted from zero: after a repair or a deploy. */
  resume(id: RecordId, reason: string): Promise<ActAnswer>;
  /** Forgets all steps and frees the key. Only when nothing outside has happened. */
  release(id: RecordId, reason: string): Promise<ActAnswer>;
  /**
   * Says what became of a step of unknown outcome, then resumes. `refused`: no step of that name is
   * unknown.
   */
  resolve(
    id: RecordId,
    step: string,
    what: { readonly happened: true; readonly result: unknown } | { readonly happened: false },
    reason: string,
  ): Promise<ActAnswer>;
  /** Nobody goes on until it is resumed. */
  park(id: RecordId, reason: string): Promise<ActAnswer>;
}

/** Locks. */
export interface LocksAdmin {
  /** The live holder; undefined when free. */
  inspect(name: string): Promise<LockState | undefined>;
  /**
   * Takes the lock from its holder and from everybody who waits. The holder does not know before its
   * next renewal: only a checked fence stops it. `missing`: it was free.
   *
   * @throws OPTION_INVALID where the store cannot do it
   */
  release(name: string, reason: string): Promise<'done' | 'missing'>;
}

/** See {@link createAdmin}. */
export interface Admin {
  readonly records: RecordsAdmin;
  readonly staged: StagedAdmin;
  readonly locks: LocksAdmin;
  readonly audit: { list(filter?: AuditFilter): Promise<AuditPage> };
  /** The same for another actor. */
  as(actor: string): Admin;
}

const purgeDefault = { batchRows: 500, batches: 200 };
const nobody: RecordId = { operation: '', scope: '', key: '' };

/**
 * Opens the operators' verbs over whichever stores are given. Whoever has this object may change what
 * happens: who may have it is for you to decide.
 *
 * Not promised: that an audit line and an act commit together where they are in different databases, or
 * for locks. There the line comes first and is settled afterwards.
 *
 * @throws OPTION_INVALID before any I/O
 */
export function createAdmin(options: AdminOptions): Admin {
  knownOptions('createAdmin()', options, ['records', 'staged', 'locks', 'audit', 'actor']);
  const { records, staged, locks, audit } = options;
  if (typeof audit?.write !== 'function') {
    throw optionError('audit', 'an audit log, like sqlAudit(postgresDatabase(pool))', audit);
  }
  const parts: ActParts = { audit, actor: checkActor(options.actor), runtime: systemRuntime };
  return {
    records: recordsAdmin(parts, records),
    staged: stagedAdmin(parts, staged),
    locks: locksAdmin(parts, locks),
    audit: { list: (filter) => audit.list(filter) },
    as: (actor) => createAdmin({ ...options, actor }),
  };
}

function recordsAdmin(parts: ActParts, store: AdminRecordStore | undefined): RecordsAdmin {
  const open = (): AdminRecordStore & { readonly admin: RecordAdmin } => {
    if (store?.admin === undefined) {
      throw optionError('records', 'a record store with operators’ verbs', store?.name);
    }
    return store as AdminRecordStore & { readonly admin: RecordAdmin };
  };
  return {
    list: async (filter = {}) => await open().admin.list({ ...filter, limit: filter.limit ?? 100 }),
    async inspect(id, show = {}) {
      const { admin, read } = bound(open());
      const [found] = (await admin.list({ ...id, limit: 1 })).records;
      if (found === undefined || show.payload !== true) return found;
      const stored = await read(id);
      if (stored === undefined || stored.result === '') return { ...found, result: undefined };
      return { ...found, result: decodeResult(stored.result) };
    },
    async release(id, reason) {
      const { admin } = open();
      const act = { act: 'records.release', target: id, reason: checkReason(reason) } as const;
      const answer = await actWith(parts, { ...act, kind: 'record' }, async (also) =>
        (await admin.remove(id, also)) ? 'done' : 'missing',
      );
      return answer as 'done' | 'missing';
    },
    async purge(reason, limit = purgeDefault) {
      const records = open();
      const act = { act: 'records.purge', target: nobody, reason: checkReason(reason) } as const;
      const { detail } = await actApart(parts, { ...act, kind: 'record' }, async () => ({
        answer: 'done' as const,
        detail: String(await records.purge(limit)),
      }));
      return Number(detail);
    },
  };
}

function bound(store: AdminRecordStore & { readonly admin: RecordAdmin }) {
  return { admin: store.admin, read: (id: RecordId) => store.read(id) };
}

function stagedAdmin(parts: ActParts, store: AdminStagedStore | undefined): StagedAdmin {
  const open = (): AdminStagedStore => {
    if (store === undefined) throw optionError('staged', 'given to createAdmin()', store);
    return store;
  };
  const decide = async (
    id: RecordId,
    verdict: StagedVerdict,
    reason: string,
    detail = '',
  ): Promise<ActAnswer> => {
    const staged = open();
    const act = `staged.${verdict.verb}`;
    const line = { act, kind: 'staged', target: id, reason: checkReason(reason), detail } as const;
    return await actWith(parts, line, (also) => staged.decide(id, verdict, also));
  };
  return {
    async list(filter = {}) {
      const page = await open().list({ ...filter, limit: filter.limit ?? 100 });
      return { records: page.records.map((record) => shown(record, {})), cursor: page.cursor };
    },
    async inspect(id, show = {}) {
      const found = await open().inspect(id);
      if (found === undefined) return undefined;
      const steps = found.steps.map((step) => shownStep(step, show));
      return { record: shown(found.record, show), steps };
    },
    resume: (id, reason) => decide(id, { verb: 'resume' }, reason),
    release: (id, reason) => decide(id, { verb: 'release' }, reason),
    park: (id, reason) => decide(id, { verb: 'park' }, reason),
    async resolve(id, step, what, reason) {
      if (!what.happened) return await decide(id, { verb: 'not-happened', step }, reason, step);
      const result = encodeResult(what.result);
      return await decide(id, { verb: 'happened', step, result }, reason, step);
    },
  };
}

function shown(record: StagedRecord, { payload }: ShowOptions): ShownStaged {
  const { input, result, error, owner: _owner, fingerprint: _fingerprint, ...facts } = record;
  if (payload !== true) return facts;
  const value = result === undefined || result === '' ? undefined : decodeResult(result);
  return { ...facts, input: decodeResult(input), result: value, error };
}

function shownStep(step: StagedStep, { payload }: ShowOptions): ShownStep {
  const { result, fingerprint: _fingerprint, ...facts } = step;
  if (payload !== true) return facts;
  return { ...facts, result: result === undefined ? undefined : decodeResult(result) };
}

function locksAdmin(parts: ActParts, store: LockStore | undefined): LocksAdmin {
  const open = (): LockStore => {
    if (store === undefined) throw optionError('locks', 'given to createAdmin()', store);
    return store;
  };
  return {
    inspect: async (name) => await open().inspect(name),
    async release(name, reason) {
      const locks = open();
      if (locks.forceRelease === undefined) {
        throw optionError('locks', 'a store that can take a lock away', locks.name);
      }
      const target = { ...nobody, key: name };
      const act = { act: 'locks.release', kind: 'lock', target } as const;
      const { answer } = await actApart(
        parts,
        { ...act, reason: checkReason(reason) },
        async () => ({
          answer: (await locks.forceRelease?.(name)) === 'released' ? 'done' : 'missing',
        }),
      );
      return answer as 'done' | 'missing';
    },
  };
}
