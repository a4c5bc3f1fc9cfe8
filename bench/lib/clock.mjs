// One clock for all processes of a machine: CLOCK_MONOTONIC.
export const nowUs = () => Number(process.hrtime.bigint() / 1000n);

/** Processor time of this process since `before`, in milliseconds. */
export function cpuMsSince(before) {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/** The median of numbers; 0 of none. */
export function median(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
