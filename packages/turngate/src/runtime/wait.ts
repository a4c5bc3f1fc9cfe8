/** Waiting that ends: by time, by an abort signal, or by the thing waited for. */
import { TurngateError } from '../core/errors.ts';
import { whenAborted } from './abort.ts';
import type { Runtime } from './runtime.ts';

/** The error a caller gets when its own signal ends the waiting. */
export function abortedError(signal: AbortSignal): TurngateError {
  return new TurngateError('ABORTED', 'the caller aborted while waiting', { cause: signal.reason });
}

/** Sleeps; an abort ends the sleep early with ABORTED. */
export function sleep(runtime: Runtime, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(abortedError(signal));
    const timer = runtime.timer(delayMs, true, () => {
      forget?.();
      resolve();
    });
    const forget =
      signal &&
      whenAborted(signal, () => {
        timer.cancel();
        reject(abortedError(signal));
      });
  });
}

/** Why waiting stopped, when it was not the promise itself that settled. */
export type Cut = 'timeout' | 'abort';

/** Limits of {@link waitFor}. */
export interface WaitLimits {
  /** Undefined: without limit. */
  readonly limitMs: number | undefined;
  /** Makes the error for a wait that was cut. */
  readonly onCut: (cut: Cut) => Error;
  readonly signal?: AbortSignal | undefined;
  /** Must the process stay alive for it? Default true; false for work nobody waits for. */
  readonly keepAlive?: boolean;
}

/**
 * Waits for a promise no longer than the limits allow. The promise itself goes on; its later
 * rejection is marked as handled here, because whoever started it also watches it.
 */
export function waitFor<T>(runtime: Runtime, promise: Promise<T>, limits: WaitLimits): Promise<T> {
  const { limitMs, onCut, signal, keepAlive = true } = limits;
  return new Promise<T>((resolve, reject) => {
    let forget: (() => void) | undefined;
    const timer =
      limitMs === undefined ? undefined : runtime.timer(limitMs, keepAlive, () => cut('timeout'));
    const settle = (): void => {
      timer?.cancel();
      forget?.();
    };
    const cut = (why: Cut): void => {
      settle();
      reject(onCut(why));
    };
    promise.then(
      (value) => {
        settle();
        resolve(value);
      },
      (error: unknown) => {
        settle();
        reject(error);
      },
    );
    forget = signal && whenAborted(signal, () => cut('abort'));
  });
}

/** Full jitter (AWS architecture blog, 2015): anywhere up to a doubling ceiling, never zero. */
export function backoffMs(
  runtime: Runtime,
  attempt: number,
  range: { readonly baseMs: number; readonly capMs: number },
): number {
  const ceilingMs = Math.min(range.capMs, range.baseMs * 2 ** Math.min(attempt, 20));
  return Math.max(1, Math.round(runtime.random() * ceilingMs));
}
