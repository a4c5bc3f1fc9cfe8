// Ratios that survive a shared machine: every slice of a variant runs between two slices of the base,
// and its figures are divided by their mean, so a slow patch slows both sides of the division.
import { quantile } from './drive.mjs';

/** What is compared unless told otherwise; each slice returns these. */
const METRICS = ['opsPerSecond', 'p50Us', 'p99Us'];

/**
 * Runs `rounds` rounds in random order. `base` and `variants` have `id` and `slice()`.
 * Returns one row for the base (plain medians) and one per variant (medians and quartiles of ratios).
 */
export async function interleave(options) {
  const { base, variants, rounds, signal, onRound, metrics = METRICS } = options;
  const baseSlices = [];
  const ratios = new Map(variants.map(({ id }) => [id, []]));
  const failures = new Map([base, ...variants].map(({ id }) => [id, {}]));
  const slice = async (variant) => {
    signal.throwIfAborted();
    const result = await variant.slice();
    addCounts(failures.get(variant.id), result.failures);
    return result;
  };
  for (let round = 1; round <= rounds; round++) {
    let before = await slice(base);
    baseSlices.push(before);
    for (const variant of shuffled(variants)) {
      const result = await slice(variant);
      const after = await slice(base);
      baseSlices.push(after);
      ratios.get(variant.id).push(ratioOf(metrics, result, before, after));
      before = after;
    }
    onRound(round);
  }
  return [
    {
      id: base.id,
      label: base.label,
      plain: mediansOf(metrics, baseSlices),
      failures: failures.get(base.id),
    },
    ...variants.map(({ slice: _, ...known }) => ({
      ...known,
      ratios: summary(metrics, ratios.get(known.id)),
      failures: failures.get(known.id),
    })),
  ];
}

function ratioOf(metrics, result, before, after) {
  return Object.fromEntries(
    metrics.map((metric) => [metric, result[metric] / ((before[metric] + after[metric]) / 2)]),
  );
}

function summary(metrics, slices) {
  return Object.fromEntries(
    metrics.map((metric) => {
      const values = slices.map((slice) => slice[metric]);
      const [low, median, high] = [0.25, 0.5, 0.75].map((share) =>
        rounded(quantile(values, share)),
      );
      return [metric, { median, low, high }];
    }),
  );
}

function mediansOf(metrics, slices) {
  return Object.fromEntries(
    metrics.map((metric) => {
      const values = slices.map((slice) => slice[metric]);
      return [metric, rounded(quantile(values, 0.5))];
    }),
  );
}

function addCounts(target, counts) {
  for (const [kind, count] of Object.entries(counts)) target[kind] = (target[kind] ?? 0) + count;
}

function rounded(value) {
  return Number(value.toPrecision(3));
}

function shuffled(list) {
  const copy = [...list];
  for (let i = copy.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [copy[i], copy[j]] = [copy[j], copy[i]];
  }
  return copy;
}
