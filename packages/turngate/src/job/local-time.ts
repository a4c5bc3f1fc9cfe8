/** Wall-clock times of a zone as instants, over the hours that repeat and those that do not exist. */
import { optionError } from '../core/option.ts';

/** A date and time as a clock on the wall of the zone shows it. */
export interface WallTime {
  readonly year: number;
  /** 1 to 12. */
  readonly month: number;
  readonly day: number;
  readonly hour: number;
  readonly minute: number;
}

const minuteMs = 60_000;
const formats = new Map<string, Intl.DateTimeFormat>();

/** @throws OPTION_INVALID for a zone this runtime does not know */
export function checkZone(zone: unknown): string {
  try {
    formatOf(zone as string);
    return zone as string;
  } catch {
    throw optionError('timeZone', 'an IANA zone such as "Asia/Shanghai"', zone);
  }
}

/** What the wall shows at an instant. */
export function wallTime(zone: string, atMs: number): WallTime {
  const parts: Record<string, number> = {};
  for (const { type, value } of formatOf(zone).formatToParts(atMs)) parts[type] = Number(value);
  const { year, month, day, hour, minute } = parts as unknown as WallTime;
  return { year, month, day, hour, minute };
}

/**
 * The first instant at which the wall shows this time or, where the clock jumps over it, the first
 * instant after the jump. A time that comes twice counts the first time only.
 */
export function instantOf(zone: string, wall: WallTime): number {
  const wanted = asUtc(wall);
  // Zones lie within a day of UTC, so the instant is in this window; the wall only jumps a little.
  let low = wanted - 26 * 60 * minuteMs;
  const offsets = new Set<number>();
  for (let atMs = low; atMs <= wanted + 26 * 60 * minuteMs; atMs += 60 * minuteMs) {
    offsets.add(asUtc(wallTime(zone, atMs)) - atMs);
  }
  const exact = [...offsets]
    .map((offset) => wanted - offset)
    .filter((atMs) => asUtc(wallTime(zone, atMs)) === wanted);
  if (exact.length > 0) return Math.min(...exact);
  // Skipped: find the jump, after which the wall shows more than was wanted.
  let high = wanted + 26 * 60 * minuteMs;
  while (high - low > minuteMs) {
    const middle = low + Math.floor((high - low) / 2 / minuteMs) * minuteMs;
    if (asUtc(wallTime(zone, middle)) >= wanted) high = middle;
    else low = middle;
  }
  return high;
}

function asUtc({ year, month, day, hour, minute }: WallTime): number {
  return Date.UTC(year, month - 1, day, hour, minute);
}

function formatOf(zone: string): Intl.DateTimeFormat {
  let format = formats.get(zone);
  if (format === undefined) {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
    });
    formats.set(zone, format);
  }
  return format;
}
