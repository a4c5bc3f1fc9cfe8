/**
 * Records in Redis for work without a transaction: claim with a lease, work, result in the place of
 * the claim. One trip before the work, one after it, one for a repeat.
 */
import type {
  Attempt,
  Claim,
  RecordCapabilities,
  RecordStore,
  StoredRecord,
  Work,
  WorkResult,
} from '../../contract/record-store.ts';
import { TurngateError } from '../../core/errors.ts';
import { type RecordId, recordIdText } from '../../core/record-id.ts';
import { DueHeap } from '../../runtime/due-heap.ts';
import { listened } from '../../runtime/events.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { backoffMs, sleep } from '../../runtime/wait.ts';
import type { RedisDriver, Script } from './driver.ts';
import { Heartbeat } from './heartbeat.ts';
import { finishedRest, runningText, standingOf, stateLetter } from './record-text.ts';
import { isOtherSyntax, redisError } from './redis-error.ts';
import { runScript } from './run-script.ts';
import * as lua from './scripts.generated.ts';
import { warnOfEvictedRecords } from './warnings.ts';

/** What {@link RedisRecords} is made of. */
export interface RedisRecordsParts {
  readonly driver: RedisDriver;
  readonly runtime: Runtime;
  readonly prefix: string;
  readonly leaseMs: number;
  /** Does the server keep what it has confirmed? As its owner says. */
  readonly durable: boolean;
}

type Seen = Exclude<Attempt, { kind: 'ran' }>;

const finishRange = { baseMs: 20, capMs: 500 };

/** The record store over any Redis driver. */
export class RedisRecords implements RecordStore<undefined> {
  readonly name = 'redis';
  readonly capabilities: RecordCapabilities;
  private readonly parts: RedisRecordsParts;
  private readonly base: string;
  private readonly leaseText: string;
  /** When each running claim is renewed next; it keeps no process alive. */
  private readonly beats: DueHeap;
  private warned = false;
  private needsScript = false;

  constructor(parts: RedisRecordsParts) {
    this.parts = parts;
    const { driver, prefix, durable, leaseMs } = parts;
    this.capabilities = { atomicWithEffect: false, durable, shared: true };
    this.base = `${driver.prefixesKeys ? '' : driver.keyPrefix}${prefix}record:`;
    this.leaseText = String(leaseMs);
    this.beats = new DueHeap(parts.runtime, false);
  }

  async read(id: RecordId): Promise<StoredRecord | undefined> {
    const held = await this.held(id);
    if (held === null) return undefined;
    const standing = standingOf(held);
    return standing.kind === 'finished' ? standing.record : undefined;
  }

  async attempt(claim: Claim, work: Work<undefined>): Promise<Attempt> {
    if (!this.warned && listened('idempotency')) {
      this.warned = true;
      warnOfEvictedRecords(this.parts.driver, claim.id);
    }
    const key = this.keyOf(claim.id);
    const running = runningText(claim);
    const held = await this.claim(key, running);
    // Our own claim can stand there: the client has sent the command again after a lost answer.
    if (held !== null && held !== running) return seenBy(claim, held);
    const heartbeat = new Heartbeat(this.beats, this.parts.leaseMs, () =>
      this.run(lua.recordRenewScript, key, [running, this.leaseText]).then(
        (reply) => Number(reply) === 1,
      ),
    );
    try {
      const result = await work(undefined);
      return { kind: 'ran', record: await this.finish(key, running, claim, result) };
    } catch (error) {
      if (error instanceof NotStored) throw error.told;
      // Before the release: a renewal behind it would claim the key anew.
      heartbeat.stop();
      await this.release(key, running);
      throw error;
    } finally {
      heartbeat.stop();
    }
  }

  async within(): Promise<Attempt> {
    throw new TurngateError(
      'TRANSACTION_REQUIRED',
      'Redis records cannot be part of a transaction: use the record store of your database',
    );
  }

  async probe(claim: Claim): Promise<Seen | { readonly kind: 'free' }> {
    const held = await this.held(claim.id);
    return held === null ? { kind: 'free' } : seenBy(claim, held);
  }

  /** Nothing to do: the server deletes what has expired. */
  async purge(): Promise<number> {
    return 0;
  }

  /** By one command of the server itself; servers before 7.0 do not have it in this form. */
  private async claim(key: string, running: string): Promise<string | null> {
    const { driver } = this.parts;
    const { needsScript } = this;
    try {
      const reply = needsScript
        ? await this.run(lua.recordClaimScript, key, [running, this.leaseText])
        : await driver.command('SET', [key, running, 'PX', this.leaseText, 'NX', 'GET'], key);
      return reply === null || reply === undefined ? null : String(reply);
    } catch (error) {
      if (!needsScript && isOtherSyntax(error)) {
        this.needsScript = true;
        return await this.claim(key, running);
      }
      const told = redisError(error);
      if (told.code !== 'STORE_UNAVAILABLE') throw told;
      // Claimed or not, nothing was done; a claim of ours that nobody knows of ends with its lease.
      const { message, retryAfterMs = 1_000 } = told;
      const outcome = 'not-applied';
      throw new TurngateError('STORE_UNAVAILABLE', message, { cause: told, outcome, retryAfterMs });
    }
  }

  /** Until the server answers, or the lease that protects the claim is over anyway. */
  private async finish(
    key: string,
    running: string,
    claim: Claim,
    result: WorkResult,
  ): Promise<StoredRecord> {
    const { runtime, leaseMs } = this.parts;
    const { owner, fingerprint, retentionMs } = claim;
    const rest = finishedRest(claim, result);
    const args = [running, stateLetter(result), rest, String(retentionMs)];
    const endMonoMs = runtime.monoMs() + leaseMs;
    for (let tries = 0; ; tries++) {
      try {
        const first = await this.run(lua.recordFinishScript, key, args);
        if (first === null || first === undefined) throw new NotStored(takenOver(claim));
        // Written out: spreading twice cost more than all the rest of a first call.
        const { state, result: text } = result;
        const firstProcessedAtMs = Number(first);
        const expiresAtMs = firstProcessedAtMs + retentionMs;
        return { state, result: text, owner, fingerprint, firstProcessedAtMs, expiresAtMs };
      } catch (error) {
        if (error instanceof NotStored) throw error;
        const pauseMs = backoffMs(runtime, tries, finishRange);
        if (runtime.monoMs() + pauseMs >= endMonoMs) throw new NotStored(notStored(claim, error));
        await sleep(runtime, pauseMs);
      }
    }
  }

  /** Its failure is not the caller's: the lease frees the key all the same. */
  private async release(key: string, running: string): Promise<void> {
    await this.run(lua.recordReleaseScript, key, [running]).catch(() => undefined);
  }

  private async held(id: RecordId): Promise<string | null> {
    const key = this.keyOf(id);
    const reply = await this.parts.driver.command('GET', [key], key).catch((error: unknown) => {
      throw redisError(error);
    });
    return reply === null || reply === undefined ? null : String(reply);
  }

  private run(script: Script, key: string, args: readonly string[]): Promise<unknown> {
    return runScript(this.parts.driver, script, ['', '1', key, ...args], (reply) => reply);
  }

  private keyOf(id: RecordId): string {
    return this.base + recordIdText(id);
  }
}

/** Carries what the caller has to be told past the release: the work was done. */
class NotStored extends Error {
  readonly told: TurngateError;

  constructor(told: TurngateError) {
    super(told.message);
    this.told = told;
  }
}

function seenBy({ fingerprint }: Claim, held: string): Seen {
  const standing = standingOf(held);
  if (standing.kind === 'finished') return { kind: 'found', record: standing.record };
  return { kind: 'busy', sameFingerprint: standing.fingerprint === fingerprint };
}

function takenOver({ id }: Claim): TurngateError {
  return new TurngateError(
    'LEASE_LOST',
    `${id.operation}: the lease ended under the work and another process took the key; this work was done too`,
    { outcome: 'applied' },
  );
}

function notStored({ id }: Claim, cause: unknown): TurngateError {
  return new TurngateError(
    'STORE_UNAVAILABLE',
    `${id.operation}: the work was done, but Redis did not take its result; a repeat may run again`,
    { cause, outcome: 'applied' },
  );
}
