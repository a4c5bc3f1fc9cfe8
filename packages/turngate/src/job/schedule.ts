/** When a job is due: periods with a label that is the same on every node. */
import { integerOption, knownOptions, optionError } from '../core/option.ts';
import { checkZone, instantOf, wallTime } from './local-time.ts';

/** A schedule. */
export type Schedule =
  /** Once per local day, at a local time; summer time neither doubles nor drops a day. */
  | { readonly daily: string; readonly timeZone: string }
  /** Once per month, on a day from 1 to 28, at a local time. */
  | { readonly monthly: number; readonly at: string; readonly timeZone: string }
  /**
   * Every so often, aligned to UTC, so that all nodes agree.
   *
   * @unit milliseconds, integer, 1_000 to 86_400_000
   */
  | { readonly everyMs: number };

/** One period: its label is the key of its run. */
export interface Period {
  /** Like `2026-11-29`, `2026-11` or `2026-11-29T10:00:00.000Z`. */
  readonly label: string;
  /** When it becomes due, epoch milliseconds. */
  readonly dueMs: number;
}

/** The latest due period at a time, and the one before any. */
export interface Calendar {
  /** The period that is due at `nowMs`: the latest one whose time has come. */
  latest(nowMs: number): Period;
  before(period: Period): Period;
}

const clock = /^([01]\d|2[0-3]):([0-5]\d)$/;

/** @throws OPTION_INVALID */
export function calendarOf(schedule: Schedule): Calendar {
  if ('everyMs' in schedule) return everyCalendar(schedule);
  const zone = checkZone(schedule.timeZone);
  if ('daily' in schedule) {
    knownOptions('schedule', schedule, ['daily', 'timeZone']);
    const [hour, minute] = timeOf('daily', schedule.daily);
    return localCalendar(zone, (year, month, day) => ({ year, month, day, hour, minute }), 'day');
  }
  knownOptions('schedule', schedule, ['monthly', 'at', 'timeZone']);
  const day = integerOption('monthly', schedule.monthly, { min: 1, max: 28, fallback: 1 });
  const [hour, minute] = timeOf('at', schedule.at);
  return localCalendar(zone, (year, month) => ({ year, month, day, hour, minute }), 'month');
}

function everyCalendar(schedule: { readonly everyMs: number }): Calendar {
  knownOptions('schedule', schedule, ['everyMs']);
  const range = { min: 1_000, max: 86_400_000, fallback: 0 };
  const everyMs = integerOption('everyMs', schedule.everyMs, range);
  const at = (dueMs: number): Period => ({ label: new Date(dueMs).toISOString(), dueMs });
  return {
    latest: (nowMs) => at(Math.floor(nowMs / everyMs) * everyMs),
    before: ({ dueMs }) => at(dueMs - everyMs),
  };
}

type Wall = Parameters<typeof instantOf>[1];

function localCalendar(
  zone: string,
  wallOf: (year: number, month: number, day: number) => Wall,
  unit: 'day' | 'month',
): Calendar {
  /** Days and months are counted on the calendar, never in hours. */
  const at = (year: number, month: number, day: number): Period => {
    const date = new Date(Date.UTC(year, month - 1, day));
    const [y, m, d] = [date.getUTCFullYear(), date.getUTCMonth() + 1, date.getUTCDate()] as const;
    const iso = date.toISOString();
    const label = unit === 'day' ? iso.slice(0, 10) : iso.slice(0, 7);
    return { label, dueMs: instantOf(zone, wallOf(y, m, d)) };
  };
  const step = (label: string, by: number): Period => {
    const [year = 0, month = 1, day = 1] = label.split('-').map(Number);
    return unit === 'day' ? at(year, month, day + by) : at(year, month + by, 1);
  };
  return {
    latest(nowMs) {
      const { year, month, day } = wallTime(zone, nowMs);
      const today = at(year, month, unit === 'day' ? day : 1);
      return today.dueMs <= nowMs ? today : step(today.label, -1);
    },
    before: ({ label }) => step(label, -1),
  };
}

function timeOf(option: string, text: unknown): [number, number] {
  const [, hour, minute] = (typeof text === 'string' && clock.exec(text)) || [];
  if (hour === undefined || minute === undefined) throw optionError(option, 'HH:MM', text);
  return [Number(hour), Number(minute)];
}
