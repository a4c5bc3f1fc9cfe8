import { describe, expect, it } from 'vitest';
import { judge, retryAfterMs } from './outcome.ts';

const answer = (status: number, headers: Record<string, string> = {}): Response =>
  new Response(null, { status, headers });
const said = (outcome: string, more: Record<string, string> = {}): Record<string, string> => ({
  'idempotency-outcome': outcome,
  ...more,
});

describe('what an answer means', () => {
  it.each([
    // With the layer's word: the status says nothing against it.
    [201, said('applied'), 'applied', true, false],
    [409, said('refused'), 'not-applied', true, false],
    [422, said('not-applied'), 'not-applied', false, false],
    [503, said('not-applied', { 'retry-after': '1' }), 'not-applied', false, true],
    [503, said('unknown'), 'unknown', false, true],
    [409, said('unknown', { 'retry-after': '1' }), 'unknown', false, true],
    [202, said('unknown'), 'unknown', false, true],
    [409, said('applied'), 'applied', true, false],
    // Without it.
    [200, {}, 'applied', true, false],
    [303, {}, 'applied', true, false],
    [400, {}, 'not-applied', false, false],
    [401, {}, 'not-applied', false, false],
    [409, {}, 'unknown', false, false],
    [409, { 'retry-after': '2' }, 'unknown', false, true],
    [425, {}, 'not-applied', false, true],
    [429, {}, 'not-applied', false, true],
    [500, {}, 'unknown', false, false],
    [502, {}, 'unknown', false, true],
    [503, {}, 'unknown', false, true],
    [504, {}, 'unknown', false, true],
  ])('%i %o: %s', (status, headers, outcome, isFinal, retry) => {
    expect(judge(answer(status, headers))).toEqual({ outcome, isFinal, retry });
  });

  it('Retry-After is seconds or a date', () => {
    const nowMs = Date.parse('2026-11-30T00:00:00Z');
    expect(retryAfterMs('120', nowMs)).toBe(120_000);
    expect(retryAfterMs(' 0 ', nowMs)).toBe(0);
    expect(retryAfterMs('Mon, 30 Nov 2026 00:00:05 GMT', nowMs)).toBe(5_000);
    expect(retryAfterMs('Mon, 30 Nov 2026 00:00:00 GMT', nowMs + 9_000)).toBe(0);
    for (const none of [null, '', 'soon', '-1']) expect(retryAfterMs(none, nowMs)).toBeUndefined();
  });
});
