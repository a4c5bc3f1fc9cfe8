/**
 * Everything impure behind one small port: clocks, timers, chance. The rest of the library sees only
 * this, which a test replaces by a clock it can jump and chance it can seed.
 */
import { hash, randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { delayMaxMs, longTimer } from './long-timer.ts';

/** A timer that can be taken back. */
export interface Timer {
  cancel(): void;
}

/** Clocks, timers and chance as the library uses them. */
export interface Runtime {
  /** Wall clock, epoch milliseconds. Jumps; never compared between hosts. */
  wallMs(): number;
  /** Monotonic clock, milliseconds. Only differences inside this process mean anything. */
  monoMs(): number;
  /**
   * Calls `run` after `delayMs`. `keepAlive: false` lets the process end before that: right for
   * renewals, wrong for a caller who is waiting.
   */
  timer(delayMs: number, keepAlive: boolean, run: () => void): Timer;
  /** Chance from 0 (included) to 1 (not included), for jitter only, never for secrets. */
  random(): number;
  /** 128 unguessable bits as base64url, for the identity of a process or an attempt. */
  randomId(): string;
}

function systemTimer(delayMs: number, keepAlive: boolean, run: () => void): Timer {
  if (delayMs > delayMaxMs) {
    return longTimer((partMs, next) => systemTimer(partMs, keepAlive, next), delayMs, run);
  }
  const handle = setTimeout(run, delayMs);
  if (!keepAlive) handle.unref();
  return { cancel: () => clearTimeout(handle) };
}

/** The real clocks, timers and chance. */
export const systemRuntime: Runtime = {
  wallMs: () => Date.now(),
  monoMs: () => performance.now(),
  timer: systemTimer,
  random: () => Math.random(),
  randomId: () => randomBytes(16).toString('base64url'),
};

/**
 * Cheap identities for attempts: 128 random bits once per process plus a counter. Unique over
 * processes by the first part, inside the process by the second; no random call per attempt.
 */
export function attemptIds(runtime: Runtime): () => string {
  const process = runtime.randomId();
  let count = 0;
  return () => `${process}.${(++count).toString(36)}`;
}

/** A version 4 UUID of a runtime's chance. */
export function uuidFrom(runtime: Runtime): string {
  const bytes = hash('sha256', runtime.randomId(), 'buffer').subarray(0, 16);
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  const parts = [
    hex.slice(0, 8),
    hex.slice(8, 12),
    hex.slice(12, 16),
    hex.slice(16, 20),
    hex.slice(20),
  ];
  return parts.join('-');
}
