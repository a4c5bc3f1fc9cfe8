/** What a single turn must have come to. */
import { expect } from 'vitest';
import type { Line } from './history.ts';

/** Its holder wrote nothing: the fence refused the one, the lock itself the other. */
export function expectRefused(turn: readonly Line[], options: { fences?: boolean } = {}): void {
  if (options.fences !== false) {
    expect(turn).toContainEqual(
      expect.objectContaining({ verb: 'fenced', phase: 'fail', code: 'FENCE_STALE' }),
    );
  }
  expect(turn).toContainEqual(
    expect.objectContaining({ verb: 'effect', phase: 'fail', code: 'LOCK_LOST' }),
  );
  expect(turn).not.toContainEqual(expect.objectContaining({ verb: 'raw' }));
}

/** Its holder kept the lock all the time and wrote both. */
export function expectWritten(turn: readonly Line[]): void {
  expect(turn).toContainEqual(expect.objectContaining({ verb: 'fenced', phase: 'ok' }));
  expect(turn).toContainEqual(expect.objectContaining({ verb: 'raw', phase: 'ok' }));
}
