/** Ends the waiting, not the work: on both ways out the processes that work are stopped next. */
export async function withLimit<T>(
  work: Promise<T>,
  limitMs: number,
  stop: AbortSignal,
): Promise<T> {
  return await new Promise<T>((resolve, reject) => {
    const onStop = (): void => reject(stop.reason as Error);
    // Not AbortSignal.any with AbortSignal.timeout: Node 20 may collect the latter before it fires.
    const timer = setTimeout(
      () => reject(new Error(`not done after ${limitMs / 1_000} s`)),
      limitMs,
    );
    stop.addEventListener('abort', onStop, { once: true });
    void work.then(resolve, reject).finally(() => {
      clearTimeout(timer);
      stop.removeEventListener('abort', onStop);
    });
  });
}
