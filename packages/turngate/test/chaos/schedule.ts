/** The seeded schedule of a run: what happens next, and when. */
import { monoMs } from './history.ts';

/** Printed, so that a failing schedule can be tried again: `TURNGATE_CHAOS_SEED`. */
export const chaosSeed: number = Number(
  process.env['TURNGATE_CHAOS_SEED'] ?? Math.floor(Math.random() * 2 ** 31),
);
console.info(`chaos: TURNGATE_CHAOS_SEED=${chaosSeed}`);

/** How long the faults of one test go on: a second or two, or `TURNGATE_CHAOS_SECONDS`. */
const faultMs: number = Number(process.env['TURNGATE_CHAOS_SECONDS'] ?? 1.5) * 1_000;

/** Chance that can be repeated. */
export interface Chance {
  /** An integer from `min` to `max`. */
  between(min: number, max: number): number;
  pick<T>(items: readonly T[]): T;
}

export function chance(seed: number): Chance {
  let state = seed;
  const random = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
  const between = (min: number, max: number): number =>
    min + Math.floor(random() * (max - min + 1));
  return {
    between,
    pick: (items) => items[between(0, items.length - 1)] as (typeof items)[number],
  };
}

/** Repeats a fault until the time for faults is over, at least once. */
export async function repeatedly(fault: () => Promise<void>): Promise<void> {
  const end = monoMs() + faultMs;
  do await fault();
  while (monoMs() < end);
}
