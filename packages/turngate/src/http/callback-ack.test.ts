import { expect, it } from 'vitest';
import { refuse, TurngateError } from '../core/errors.ts';
import { type AcknowledgeOptions, acknowledge } from './callback-ack.ts';

/** The text that the channel reads and what onError was told. */
async function answerTo(error: unknown, options: AcknowledgeOptions = {}): Promise<unknown[]> {
  const told: unknown[] = [];
  const onError = (given: unknown): void => void told.push(given);
  const { body } = await acknowledge('alipay', () => Promise.reject(error), {
    ...options,
    onError,
  });
  return [String(body), ...told];
}

it('work done before is a success and nobody’s error, also where repeats are refused', async () => {
  expect(await answerTo(new TurngateError('DUPLICATE_REQUEST', 'before'))).toEqual(['success']);
});

it('a refusal is told, and is what the declaration says; any other error is a failure', async () => {
  const [no, boom] = [refuse('CLOSED', 'the order is closed'), new Error('boom')];
  expect(await answerTo(no)).toEqual(['fail', no]);
  expect(await answerTo(no, { onRefused: 'success' })).toEqual(['success', no]);
  expect(await answerTo(boom, { onRefused: 'success' })).toEqual(['fail', boom]);
});
