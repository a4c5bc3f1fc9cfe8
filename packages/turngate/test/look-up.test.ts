/** `gate.lookUp`: what is known of a key, by a question that changes nothing. */
import { describe, expect, it } from 'vitest';
import { fingerprintOf } from '../src/core/fingerprint.ts';
import { createGate, onEvent, refuse } from '../src/index.ts';
import { memory } from '../src/stores/memory/index.ts';
import { targets } from './facts/targets.ts';
import { door } from './support/clock.ts';
import { rejection } from './support/errors.ts';
import { describeWith } from './support/servers.ts';

const idOf = (key: string) => ({ operation: 'pay', scope: '-', key });
const asked = fingerprintOf({ amount: 1 });

for (const { name, needs, open } of targets.filter(({ name }) => name !== 'PGlite')) {
  describeWith(needs, `looking up on ${name}`, () => {
    it('nothing before, in progress during, the outcome after; asked where the work runs and elsewhere', async () => {
      const target = await open();
      const [here, elsewhere] = [target.store(), target.store()].map((records) =>
        createGate({ records, memoryCharsMax: 0 }),
      ) as [ReturnType<typeof createGate>, ReturnType<typeof createGate>];
      const [begun, held] = [door(), door()];
      const pay = here.operation({
        name: 'pay',
        key: ({ key }: { key: string; amount: number }) => key,
        fingerprint: ({ amount }) => ({ amount }),
        async run({ key }) {
          begun.open();
          await held.opened;
          if (key === 'no') throw refuse('SOLD_OUT', 'nothing left');
          return { paid: key };
        },
      });
      try {
        for (const gate of [elsewhere, here, elsewhere]) {
          expect(await gate.lookUp(idOf('k'), asked)).toBeUndefined();
        }
        const first = pay({ key: 'k', amount: 1 });
        await begun.opened;
        for (const gate of [here, elsewhere]) {
          await rejection(gate.lookUp(idOf('k'), asked), 'REQUEST_IN_PROGRESS');
        }
        held.open();
        const { firstProcessedAt } = await first;
        await rejection(pay({ key: 'no', amount: 1 }), 'REFUSED');
        for (const gate of [here, elsewhere]) {
          const known = { value: { paid: 'k' }, replayed: true, firstProcessedAt };
          expect(await gate.lookUp(idOf('k'), asked)).toMatchObject(known);
          await rejection(gate.lookUp(idOf('no'), asked), 'REFUSED');
          const other = gate.lookUp(idOf('k'), fingerprintOf({ amount: 2 }));
          await rejection(other, 'IDEMPOTENCY_KEY_REUSED');
        }
      } finally {
        held.open();
        await Promise.all([here, elsewhere].map((gate) => gate.close()));
        await target.close();
      }
    });
  });
}

describe('a question', () => {
  it('declares nothing, starts nothing, and is checked before the store is asked', async () => {
    const told: string[] = [];
    const stop = onEvent('idempotency', ({ type }) => told.push(type));
    const gate = createGate({ records: memory() });
    await gate.lookUp(idOf('k'), asked);
    stop();
    expect([told, gate.operations]).toEqual([[], []]);
    await rejection(gate.lookUp({ ...idOf('k'), operation: 'Pay' }, asked), 'OPTION_INVALID');
    await rejection(gate.lookUp({ ...idOf('k'), scope: '' }, asked), 'OPTION_INVALID');
    await rejection(gate.lookUp(idOf(''), asked), 'IDEMPOTENCY_KEY_MISSING');
    await gate.close();
    await rejection(gate.lookUp(idOf('k'), asked), 'GATE_CLOSED');
  });
});
