import { describe, expect, it } from 'vitest';
import { instantOf, wallTime } from './local-time.ts';
import { calendarOf, type Schedule } from './schedule.ts';

/** Every label that becomes due between two times, walking minute by minute. */
function labels(schedule: Schedule, fromMs: number, toMs: number): string[] {
  const calendar = calendarOf(schedule);
  const found: string[] = [];
  for (let atMs = fromMs; atMs < toMs; atMs += 60_000) {
    const { label } = calendar.latest(atMs);
    if (found.at(-1) !== label) found.push(label);
  }
  return found;
}

describe('periods', () => {
  it.each([
    ['America/New_York', '01:30', Date.UTC(2026, 9, 30)],
    ['America/New_York', '02:30', Date.UTC(2026, 2, 6)],
    ['Australia/Lord_Howe', '01:45', Date.UTC(2026, 3, 3)],
    ['Australia/Lord_Howe', '02:15', Date.UTC(2026, 9, 2)],
    ['Pacific/Apia', '00:00', Date.UTC(2026, 1, 27)],
    ['Asia/Shanghai', '00:00', Date.UTC(2026, 10, 27)],
  ])('are one per local day in %s at %s, whatever the clock does', (timeZone, daily, fromMs) => {
    const found = labels({ daily, timeZone }, fromMs, fromMs + 4 * 86_400_000);
    const first = Date.parse(found[0] as string);
    const days = found.map((_, i) => new Date(first + i * 86_400_000).toISOString().slice(0, 10));
    expect(found.length).toBeGreaterThanOrEqual(4);
    expect(found).toEqual(days);
  });

  it('moves a time that does not exist to the end of the gap', () => {
    const wall = { year: 2026, month: 3, day: 8, hour: 2, minute: 30 };
    const atMs = instantOf('America/New_York', wall);
    expect(new Date(atMs).toISOString()).toBe('2026-03-08T07:00:00.000Z');
    expect(wallTime('America/New_York', atMs)).toMatchObject({ hour: 3, minute: 0 });
  });

  it('takes the first of a time that comes twice', () => {
    const wall = { year: 2026, month: 11, day: 1, hour: 1, minute: 30 };
    expect(new Date(instantOf('America/New_York', wall)).toISOString()).toBe(
      '2026-11-01T05:30:00.000Z',
    );
  });

  it('walks back without skipping a month, a day or a step', () => {
    const monthly = calendarOf({ monthly: 1, at: '03:00', timeZone: 'Europe/Berlin' });
    const march = monthly.latest(Date.UTC(2026, 2, 15));
    expect([march.label, monthly.before(march).label]).toEqual(['2026-03', '2026-02']);
    const every = calendarOf({ everyMs: 900_000 });
    const now = every.latest(Date.UTC(2026, 0, 1, 0, 7));
    expect([now.label, every.before(now).label]).toEqual([
      '2026-01-01T00:00:00.000Z',
      '2025-12-31T23:45:00.000Z',
    ]);
  });

  it.each([
    [{ daily: '24:00', timeZone: 'UTC' }],
    [{ daily: '12:00', timeZone: 'Mars/Base' }],
    [{ monthly: 31, at: '12:00', timeZone: 'UTC' }],
    [{ everyMs: 10 }],
    [{ everyMs: 60_000, extra: 1 }],
  ])('refuses %o', (schedule) => {
    expect(() => calendarOf(schedule as Schedule)).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID' }),
    );
  });
});
