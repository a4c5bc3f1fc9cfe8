// Every key is new: what the guard costs when nothing is repeated.
import { guarded } from './guarded.mjs';
import * as hand from './hand-written.mjs';
import { freshRequest } from './workload.mjs';

const variant = (id, label, open, more = {}) => ({ id, label, open, ...more });
const plain =
  (make) =>
  ({ pool }) => ({ call: make(pool) });
const turngate =
  (options) =>
  ({ pool }) =>
    guarded(pool, options);

export const firstCall = {
  id: 'first-call',
  title: 'First call',
  requests: () => ({ next: freshRequest }),
  base: variant('bare', 'bare: BEGIN, UPDATE, COMMIT', plain(hand.bare)),
  variants: [
    variant('insert-update', 'by hand: key, no result', plain(hand.insertUpdate)),
    variant('by-hand', 'by hand: key, work, result', plain(hand.insertUpdateStore)),
    variant('by-hand-select', 'by hand: SELECT first', plain(hand.selectFirst)),
    variant('three-commits', 'peers: three commits', plain(hand.threeCommits)),
    variant('turngate', '**Turngate**', turngate({}), { goals: { loopback: 0.7, rtt: 0.85 } }),
    variant('turngate-within', 'Turngate, `within` your transaction', ({ pool }) => {
      const { within, ...rest } = guarded(pool);
      return { ...rest, call: within };
    }),
    variant('turngate-lock', 'Turngate + in-process lock', turngate({ lock: true })),
    variant('turngate-unprepared', 'Turngate, `prepare: false`', turngate({ prepare: false })),
  ],
};

const UPDATE_IN = (tx, account) => tx`
  UPDATE accounts SET balance = balance + 1 WHERE id = ${account} RETURNING balance`;

export const firstCallPostgresJs = {
  id: 'first-call-postgres-js',
  title: 'First call on postgres.js',
  requests: () => ({ next: freshRequest }),
  base: variant('bare-postgres-js', 'bare: `sql.begin` of the UPDATE', ({ sql }) => ({
    call: ({ account }) => sql.begin((tx) => UPDATE_IN(tx, account)),
  })),
  variants: [
    variant('by-hand-postgres-js', 'by hand: key, work, result', ({ sql }) => ({
      call: ({ key, account }) =>
        sql.begin(async (tx) => {
          const { count } = await tx`
            INSERT INTO idem (op, key) VALUES (1, ${key}) ON CONFLICT DO NOTHING`;
          if (count === 0) return await tx`SELECT result FROM idem WHERE op = 1 AND key = ${key}`;
          const [{ balance }] = await UPDATE_IN(tx, account);
          await tx`UPDATE idem SET state = 2, result = ${balance} WHERE op = 1 AND key = ${key}`;
          return balance;
        }),
    })),
    variant('turngate-postgres-js', '**Turngate**', ({ sql }) =>
      guarded(sql, { work: 'postgresJs' }),
    ),
  ],
};
