// Nine calls in ten repeat one of the last 100 keys, and each must be given the first result.
import { guarded } from './guarded.mjs';
import * as hand from './hand-written.mjs';
import { RepeatingRequests } from './workload.mjs';

const variant = (id, label, open, more = {}) => ({ id, label, open, ...more });
const plain =
  (make) =>
  ({ pool }) => ({ call: make(pool) });

export const repeats = {
  id: 'repeats',
  title: '90 % repeats',
  requests: () => new RepeatingRequests(0.9),
  base: variant('bare-repeats', 'bare: BEGIN, UPDATE, COMMIT', plain(hand.bare)),
  variants: [
    variant('by-hand-repeats', 'by hand: key, work, result', plain(hand.insertUpdateStore)),
    variant('by-hand-select-repeats', 'by hand: SELECT first', plain(hand.selectFirst)),
    variant('three-commits-repeats', 'peers: three commits', plain(hand.threeCommits)),
    variant('turngate-cold', '**Turngate**, memory off', ({ pool }) => guarded(pool), {
      goals: { loopback: 1.6 },
    }),
    variant(
      'turngate-memory',
      '**Turngate**, memory on',
      ({ pool }) => guarded(pool, { memory: true }),
      { goals: { loopback: 4 } },
    ),
  ],
};
