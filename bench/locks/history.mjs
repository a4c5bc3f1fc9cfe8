// Judges what the tasks wrote down: overlaps, order, waits, the cost of a turn.
import { quantile } from '../lib/drive.mjs';

/** All turns of all processes by the time of their grant. */
export function turnsOf(results) {
  return results
    .flatMap(({ records }, process) =>
      records.map(([task, askedUs, gotUs, endUs]) => ({ process, task, askedUs, gotUs, endUs })),
    )
    .sort((a, b) => a.gotUs - b.gotUs);
}

/** Somebody got in before somebody else was out; all read one monotonic clock. */
export function overlapsIn(turns) {
  let outUs = 0;
  let overlaps = 0;
  for (const { gotUs, endUs } of turns) {
    if (gotUs < outUs) overlaps++;
    outUs = Math.max(outUs, endUs);
  }
  return overlaps;
}

/** Share of turns given to a task before one of its process that had asked earlier. */
function invertedShare(turns) {
  const last = new Map();
  let inverted = 0;
  for (const { process, task } of turns) {
    if (task < (last.get(process) ?? 0)) inverted++;
    last.set(process, task);
  }
  return inverted / turns.length;
}

/** The figures of one run. */
export function judge({ results, used, tripUs, insideMs, tasks }) {
  const turns = turnsOf(results);
  const count = turns.length;
  const insideUs = turns.reduce((sum, { gotUs, endUs }) => sum + endUs - gotUs, 0);
  const firstUs = turns.reduce((min, { askedUs }) => Math.min(min, askedUs), Infinity);
  const lastUs = turns.reduce((max, { endUs }) => Math.max(max, endUs), 0);
  const idealUs = insideMs === 0 ? count * tripUs : insideUs;
  const handsUs = turns.slice(1).map(({ gotUs }, i) => Math.max(0, gotUs - turns[i].endUs));
  const cpuMs = results.reduce((sum, result) => sum + result.cpuMs, 0);
  return {
    timesIdeal: (lastUs - firstUs) / idealUs,
    commands: used.commands / count,
    handP50: quantile(handsUs, 0.5) / tripUs,
    handP99: quantile(handsUs, 0.99) / tripUs,
    cpuUs: (1_000 * cpuMs) / count,
    redisUs: (1_000 * used.cpuMs) / count,
    inverted: 100 * invertedShare(turns),
    failed: (100 * (tasks - count)) / tasks,
    overlaps: overlapsIn(turns),
  };
}
