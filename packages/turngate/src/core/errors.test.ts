import { describe, expect, it } from 'vitest';
import { CommitUnknown, isCommitUnknown } from '../contract/record-store.ts';
import {
  type ErrorCode,
  errorTable,
  isTurngateError,
  refuse,
  show,
  TurngateError,
} from './errors.ts';

const codes = Object.keys(errorTable) as ErrorCode[];

describe('the error table', () => {
  it.each(codes)('%s has an outcome, a status and an advice that says what to do', (code) => {
    const { outcome, httpStatus, advice } = errorTable[code];
    expect(code).toMatch(/^[A-Z]+(_[A-Z]+)*$/);
    expect(['not-applied', 'applied', 'unknown']).toContain(outcome);
    expect([400, 404, 409, 410, 412, 413, 422, 500, 503]).toContain(httpStatus);
    expect(advice).toMatch(/^[A-Z].{20,}\.$/);
    const error = new TurngateError(code, 'message');
    expect(error).toMatchObject({ code, outcome, httpStatus, replayed: false });
    expect(error).toBeInstanceOf(Error);
    expect(error.name).toBe('TurngateError');
    expect('cause' in error).toBe(false);
  });

  it('a detail overrides the outcome and carries its facts', () => {
    const cause = new Error('cause');
    const firstProcessedAt = new Date(5);
    const detail = { outcome: 'unknown', retryAfterMs: 7, cause, firstProcessedAt } as const;
    expect(new TurngateError('BUSY', 'm', detail)).toMatchObject(detail);
  });
});

describe('recognising errors', () => {
  it('works over two copies of the package', async () => {
    const copyUrl = './errors.ts?copy';
    const copy = (await import(/* @vite-ignore */ copyUrl)) as typeof import('./errors.ts');
    expect(copy.TurngateError).not.toBe(TurngateError);
    const foreign = new copy.TurngateError('BUSY', 'message');
    expect(foreign instanceof TurngateError).toBe(false);
    expect(isTurngateError(foreign)).toBe(true);
    expect(isTurngateError(foreign, 'BUSY')).toBe(true);
    expect(isTurngateError(foreign, 'ABORTED')).toBe(false);
    expect(copy.isTurngateError(new TurngateError('BUSY', 'm'))).toBe(true);
    expect(isCommitUnknown(new CommitUnknown(new Error('x')))).toBe(true);
  });

  it.each([[undefined], [null], ['BUSY'], [new Error('x')], [{ code: 'BUSY' }]])(
    'takes %s for a stranger',
    (value) => {
      expect(isTurngateError(value)).toBe(false);
      expect(isCommitUnknown(value)).toBe(false);
    },
  );
});

describe('refuse()', () => {
  it('makes a refusal to be remembered', () => {
    const error = refuse('OUT_OF_STOCK', 'none left', { left: 0n });
    expect(error).toMatchObject({
      code: 'REFUSED',
      refusal: { code: 'OUT_OF_STOCK', message: 'none left', data: { left: 0n } },
    });
    expect(refuse('NO', 'm').refusal).toStrictEqual({ code: 'NO', message: 'm' });
  });

  it.each(['', 'lower', '1A', 'A B', 'A'.repeat(65)])('does not take %j for a code', (code) => {
    expect(() => refuse(code, 'm')).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }));
  });
});

describe('show()', () => {
  it('is short, on one line and never a payload', () => {
    expect(show('x'.repeat(500)).length).toBeLessThan(50);
    expect(show('a\nb')).toBe('"a\\nb"');
    expect(show({ card: '4111' })).toBe('a value of type object');
    expect(show(['4111'])).toBe('an array');
    expect(show(5n)).toBe('5n');
  });
});
