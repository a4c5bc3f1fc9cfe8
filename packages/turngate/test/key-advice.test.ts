import { afterEach, describe, expect, it } from 'vitest';
import { createGate, type IdempotencyEvent, onEvent } from '../src/index.ts';
import { memory, memoryLocks } from '../src/stores/memory/index.ts';
import { rejection } from './support/errors.ts';

describe('keys that are none, met by operations', () => {
  let stop: () => void = () => {};
  afterEach(() => stop());

  function open() {
    const gate = createGate({ records: memory(), locks: memoryLocks() });
    const declare = (name: string) =>
      gate.operation({
        name,
        key: ({ key }: { key: string }) => key,
        scope: () => 'user:7',
        run: () => 'done',
      });
    const advice: IdempotencyEvent[] = [];
    stop = onEvent('idempotency', (event) => event.type === 'key-advice' && advice.push(event));
    return { gate, declare, advice };
  }

  it('the user alone is refused on every call and leaves no record', async () => {
    const { gate, declare } = open();
    const pay = declare('order.pay');
    for (let i = 0; i < 3; i++) {
      const error = await rejection(pay({ key: '7' }), 'IDEMPOTENCY_KEY_INVALID');
      expect(error.message).toContain('second intent of this user');
    }
    expect((await pay({ key: 'o1' })).replayed).toBe(false);
    await gate.close();
  });

  it('points in time are told once per operation, after three of them; the calls go on', async () => {
    const { gate, declare, advice } = open();
    const [pay, ship] = [declare('order.pay'), declare('order.ship')];
    for (let i = 0; i < 2; i++) await pay({ key: String(1_796_000_000_000 + i) });
    for (let i = 0; i < 5; i++) await pay({ key: String(1_796_000_000_001) }); // One and the same key.
    expect(advice).toEqual([]);
    for (let i = 0; i < 50; i++) await pay({ key: String(1_796_000_001_000 + i) });
    expect(advice).toMatchObject([{ operation: 'order.pay', type: 'key-advice' }]);
    for (let i = 0; i < 5; i++) await ship({ key: String(1_796_000_000_000 + i) });
    expect(advice).toHaveLength(2);
    await gate.close();
  });

  it('a single odd key among good ones is not told', async () => {
    const { gate, declare, advice } = open();
    const pay = declare('order.pay');
    for (let i = 0; i < 40; i++) await pay({ key: i === 5 ? '1796000000' : `order-no-${i}` });
    expect(advice).toEqual([]);
    await gate.close();
  });
});
