/** Timers longer than `setTimeout` can count: 31 bits of milliseconds, and it runs what is longer at once. */

interface Cancellable {
  cancel(): void;
}

/** The longest delay one timer of the platform can have: 24.8 days. */
export const delayMaxMs = 2 ** 31 - 1;

/** One timer after another until `delayMs` is over. */
export function longTimer(
  timer: (delayMs: number, run: () => void) => Cancellable,
  delayMs: number,
  run: () => void,
): Cancellable {
  let leftMs = delayMs;
  let part: Cancellable;
  const next = (): void => {
    if (leftMs <= 0) {
      run();
      return;
    }
    const partMs = Math.min(leftMs, delayMaxMs);
    leftMs -= partMs;
    part = timer(partMs, next);
  };
  next();
  return { cancel: () => part.cancel() };
}
