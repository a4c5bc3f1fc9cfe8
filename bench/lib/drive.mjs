// One slice of load: `calls` calls with `inFlight` of them open at any time.
import { nowUs } from './clock.mjs';

/** Runs the slice; returns rate, latencies and the failed calls by code. */
export async function drive({ calls, inFlight, call }) {
  const latenciesUs = new Float64Array(calls);
  const failures = {};
  let next = 0;
  const worker = async () => {
    while (next < calls) {
      const index = next++;
      const sentUs = nowUs();
      try {
        await call();
      } catch (error) {
        const kind = error?.code ?? error?.name ?? 'unknown';
        failures[kind] = (failures[kind] ?? 0) + 1;
      }
      latenciesUs[index] = nowUs() - sentUs;
    }
  };
  const startUs = nowUs();
  await Promise.all(Array.from({ length: inFlight }, worker));
  const tookUs = nowUs() - startUs;
  return {
    opsPerSecond: calls / (tookUs / 1e6),
    p50Us: quantile(latenciesUs, 0.5),
    p99Us: quantile(latenciesUs, 0.99),
    failures,
  };
}

/** The value below which `share` of the values lie. */
export function quantile(values, share) {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
}
