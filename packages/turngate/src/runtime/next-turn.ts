/** The event loop. */

/** Runs it in the next turn, behind what was put there before. */
export function nextTurn(run: () => void): void {
  setImmediate(run);
}
