/**
 * Abort signals that many share: a gate's closing, or one that a caller hands to all its calls. Node
 * warns of a leak from the eleventh listener on, so each signal gets one, whoever else waits.
 */

const waiting = new WeakMap<EventTarget, Set<() => void>>();

/**
 * Calls `run` when the signal aborts, at once if it already has.
 *
 * @returns takes it back; safe to repeat
 */
export function whenAborted(signal: AbortSignal, run: () => void): () => void {
  if (signal.aborted) {
    run();
    return () => {};
  }
  const known = waiting.get(signal);
  const runs = known ?? new Set();
  if (known === undefined) {
    waiting.set(signal, runs);
    signal.addEventListener('abort', tellAll, { once: true });
  }
  const once = (): void => run(); // The same function may wait twice.
  runs.add(once);
  return () => {
    runs.delete(once);
    if (runs.size > 0 || waiting.get(signal) !== runs) return;
    waiting.delete(signal);
    signal.removeEventListener('abort', tellAll);
  };
}

function tellAll({ target }: Event): void {
  const runs = waiting.get(target as AbortSignal);
  waiting.delete(target as AbortSignal);
  for (const run of runs ?? []) run();
}

/**
 * A signal of its own that aborts with the first of the sources, until `forget`. Not AbortSignal.any:
 * that leaves something behind on a source that lives long, for every signal made of it.
 */
export function ownSignal(...sources: readonly AbortSignal[]): {
  readonly signal: AbortSignal;
  readonly forget: () => void;
} {
  const controller = new AbortController();
  const heard = sources.map((source) => whenAborted(source, () => controller.abort(source.reason)));
  const forget = (): void => {
    for (const end of heard) end();
  };
  return { signal: controller.signal, forget };
}
