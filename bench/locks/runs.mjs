// Runs of whole processes: they cannot be interleaved call by call, so each figure is the median of
// runs in random order.
import { startChild } from '../lib/child.mjs';
import { median } from '../lib/clock.mjs';

/** Starts the workers, and ends them whatever happens. */
export async function withWorkers(count, settings, body) {
  const url = new URL('./worker.mjs', import.meta.url);
  const workers = Array.from({ length: count }, () => startChild(url, settings));
  try {
    return await body(workers);
  } finally {
    await Promise.all(workers.map((worker) => worker.end()));
  }
}

/** One row per entry: the median of each figure; overlaps and losses are never averaged away. */
export async function medianOfRuns(entries, rounds, { signal, say }, title, runOnce) {
  const runs = new Map(entries.map(({ id }) => [id, []]));
  for (let round = 1; round <= rounds; round++) {
    for (const entry of entries.toSorted(() => Math.random() - 0.5)) {
      signal.throwIfAborted();
      say(`${title}: ${entry.id}, run ${round} of ${rounds}`);
      runs.get(entry.id).push(await runOnce(entry));
    }
  }
  return entries.map(({ id, label, ours, local }) => {
    const figures = runs.get(id);
    const values = Object.keys(figures[0]).map((key) => {
      const all = figures.map((one) => one[key]);
      return [key, WORST.includes(key) ? Math.max(...all) : median(all)];
    });
    return { id, label, ours, bound: local, values: Object.fromEntries(values) };
  });
}

const WORST = ['overlaps', 'lost', 'failed'];
