import { randomBytes } from 'node:crypto';
import { linkSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { EmbeddedPostgresError } from './embedded-postgres-error.ts';
import { identifyProcess, isRunning, type ProcessIdentity } from './process-identity.ts';

/** Held while one Node process owns a data directory. */
export interface OwnerLock {
  /** Lets the next process in. May be called twice. */
  release(): void;
}

interface OwnerRecord extends ProcessIdentity {
  readonly released?: true;
}

const OWNER_FILE = /^owner-(\d{6,})\.json$/;

/**
 * Makes this process the only owner of a data directory, or throws `DATA_DIR_IN_USE`.
 *
 * The directory holds numbered files and the highest number is the owner. Taking over a dead owner
 * means creating the next number, which only one contender can do, and the highest file is never
 * deleted. So there is no moment in which two processes can both believe that they own it, as
 * there would be with "delete the stale file, then create it again".
 *
 * Not promised: it does not see owners on other machines or in other pid namespaces.
 */
export function takeOwnership(dataDir: string): OwnerLock {
  const self = identifyProcess(process.pid);
  if (self === undefined) throw new Error(`cannot read the start time of process ${process.pid}`);
  for (;;) {
    const current = highest(dataDir);
    const holder = current === 0 ? undefined : readRecord(dataDir, current);
    if (holder !== undefined && holder.released !== true && isRunning(holder)) {
      const who = holder.pid === self.pid ? `this process (${self.pid})` : `process ${holder.pid}`;
      throw new EmbeddedPostgresError(
        'DATA_DIR_IN_USE',
        `the data directory ${dataDir} is in use by ${who}; stop it or choose another directory`,
      );
    }
    const mine = current + 1;
    if (!createRecord(dataDir, mine, self)) continue;
    // A contender that read the directory long ago may create a number that is already history.
    if (highest(dataDir) !== mine) {
      rmSync(ownerFile(dataDir, mine), { force: true });
      continue;
    }
    removeBelow(dataDir, mine);
    return { release: () => markReleased(dataDir, mine, self) };
  }
}

function highest(dataDir: string): number {
  return Math.max(0, ...ownerNumbers(dataDir));
}

function ownerNumbers(dataDir: string): number[] {
  return readdirSync(dataDir).flatMap((name) => {
    const digits = OWNER_FILE.exec(name)?.[1];
    return digits === undefined ? [] : [Number(digits)];
  });
}

function ownerFile(dataDir: string, number: number): string {
  return join(dataDir, `owner-${String(number).padStart(6, '0')}.json`);
}

/** An unreadable record has no living owner: records appear whole, by link or rename. */
function readRecord(dataDir: string, number: number): OwnerRecord | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(ownerFile(dataDir, number), 'utf8'));
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is OwnerRecord {
  if (typeof value !== 'object' || value === null) return false;
  return 'pid' in value && Number.isInteger(value.pid) && 'stamp' in value;
}

/** False when somebody else created this number first. */
function createRecord(dataDir: string, number: number, owner: ProcessIdentity): boolean {
  const draft = writeDraft(dataDir, owner);
  try {
    linkSync(draft, ownerFile(dataDir, number));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

function markReleased(dataDir: string, number: number, owner: ProcessIdentity): void {
  if (readRecord(dataDir, number)?.pid !== owner.pid) return;
  try {
    renameSync(writeDraft(dataDir, { ...owner, released: true }), ownerFile(dataDir, number));
  } catch {
    // The directory is gone or full. Our death releases the lock as well.
  }
}

function writeDraft(dataDir: string, record: OwnerRecord): string {
  const draft = join(dataDir, `owner-${process.pid}-${randomBytes(6).toString('hex')}.draft`);
  writeFileSync(draft, JSON.stringify(record), { mode: 0o600, flag: 'wx' });
  return draft;
}

function removeBelow(dataDir: string, number: number): void {
  for (const older of ownerNumbers(dataDir)) {
    if (older < number) rmSync(ownerFile(dataDir, older), { force: true });
  }
}
