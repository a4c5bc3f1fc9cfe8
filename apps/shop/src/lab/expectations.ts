/**
 * What the theory says of every cell, written before looking at the numbers. A cell that comes out
 * differently fails the run: either the theory, the storm or the implementation is not understood.
 */
import type { ImplementationId } from './implementations.ts';
import type { LossKind } from './losses.ts';
import type { StormId } from './storms/index.ts';

export type Theory =
  /** Each of these kinds must be lost; others may be lost with them. */
  | { readonly verdict: 'loses'; readonly kinds: readonly LossKind[]; readonly why: string }
  | { readonly verdict: 'clean'; readonly why: string }
  /** Decided by timing that the storm cannot force. */
  | { readonly verdict: 'may'; readonly why: string };

const loses = (kinds: readonly LossKind[], why: string): Theory => ({
  verdict: 'loses',
  kinds,
  why,
});
const clean = (why: string): Theory => ({ verdict: 'clean', why });

const charges = ['extraCharges'] as const;
const shelf = loses(
  ['oversold', 'stockDrift'],
  'the lock is on the order; 200 orders read one shelf and write back what they read, minus one',
);
const ownUpdate = clean('every buyer has an own key; the shelf is guarded by its UPDATE');
const stateGuarded = clean('the second key finds the state already moved');
const sameKey = clean('the unique index lets one request with the key in');
const cancelOverwritten = loses(
  ['chargedAfterCancel'],
  'the state is read before the work and written after it, over a cancellation in between',
);

const ofNoGuard = {
  'double-click': loses(charges, 'both clicks read "created" before one of them writes'),
  'double-click-new-key': loses(charges, 'it does not look at keys at all'),
  'fifty-at-once': loses(charges, 'all fifty read "created" before one of them writes'),
  'retry-storm': loses(charges, 'the abandoned attempt goes on while the next one starts'),
  'retry-storm-new-key': loses(charges, 'the abandoned attempt goes on while the next one starts'),
  'flash-sale': loses(
    ['oversold', 'stockDrift'],
    'all read the full shelf and write back what they read, minus one',
  ),
  'killed-mid-payment': loses(charges, 'killed between charge and state; the retry charges again'),
  'failing-first': loses(charges, 'no transaction takes back the charge of the failed attempt'),
  cancelled: cancelOverwritten,
};

const ofLockOnly = {
  'double-click': loses(charges, 'the second click waits for the lock and charges again'),
  'double-click-new-key': loses(charges, 'the second click waits for the lock and charges again'),
  'fifty-at-once': loses(charges, 'as many charge, one by one, as the wait for the lock allows'),
  'retry-storm': loses(charges, 'each retry waits for the lock and charges again'),
  'retry-storm-new-key': loses(charges, 'each retry waits for the lock and charges again'),
  'flash-sale': shelf,
  'killed-mid-payment': loses(charges, 'committed, not answered: the retry charges again'),
  'failing-first': clean('the failed attempt was rolled back, so one charge is right'),
  cancelled: loses(['chargedAfterCancel'], 'it never looks at the state'),
};

const ofCheckThenInsert = {
  'double-click': loses(charges, 'both look before one of them inserts, and both inserts succeed'),
  'double-click-new-key': loses(charges, 'both keys are new, and both read "created"'),
  'fifty-at-once': loses(charges, 'fifty look before one of them inserts'),
  'retry-storm': loses(charges, 'the retry looks before the abandoned attempt inserts'),
  'retry-storm-new-key': loses(charges, 'the retry reads "created" before the first one writes'),
  'flash-sale': ownUpdate,
  'killed-mid-payment': clean('one attempt at a time, and the record commits with the sale'),
  'failing-first': clean('one attempt at a time, and the record is rolled back with the sale'),
  cancelled: cancelOverwritten,
};

const ofRecordOutside = {
  'double-click': clean('the second finds the record, and this time the first succeeds'),
  'double-click-new-key': stateGuarded,
  'fifty-at-once': clean('49 find the record, and this time the first succeeds'),
  'retry-storm': clean('the retry finds the record, and the abandoned attempt succeeds'),
  'retry-storm-new-key': stateGuarded,
  'flash-sale': loses(
    ['falseSuccess'],
    'the record of a sold-out buyer stays; pressing again is answered "already paid"',
  ),
  'killed-mid-payment': loses(
    ['falseSuccess', 'ordersLost'],
    'killed before the commit: the record stays, the sale does not',
  ),
  'failing-first': loses(
    ['falseSuccess', 'ordersLost'],
    'the sale is rolled back, the record is not: the retry hears "already paid"',
  ),
  cancelled: loses(
    ['falseSuccess'],
    'the record of the refused payment stays; pressing again is answered "already paid"',
  ),
};

const ofDeletedInRollback = {
  'double-click': sameKey,
  'double-click-new-key': stateGuarded,
  'fifty-at-once': sameKey,
  'retry-storm': sameKey,
  'retry-storm-new-key': stateGuarded,
  'flash-sale': clean('who is sold out was told so; only the second press hangs "in progress"'),
  'killed-mid-payment': loses(
    ['ordersLost'],
    'the claim of the dead server stays "in progress" for every retry',
  ),
  'failing-first': loses(
    ['ordersLost'],
    'the rollback undoes the deletion; the claim stays "in progress" for every retry',
  ),
  cancelled: clean('who is cancelled was told so; the state is guarded'),
};

const ofLeaseWithoutRenewal = {
  'double-click': loses(charges, 'the lease ends under the first; the second reads "created"'),
  'double-click-new-key': loses(
    charges,
    'the lease ends under the first; the second reads "created"',
  ),
  'fifty-at-once': loses(charges, 'every 120 ms the next one gets in, until one has committed'),
  'retry-storm': loses(charges, 'the lease of the abandoned attempt ends before its work'),
  'retry-storm-new-key': loses(charges, 'the lease of the abandoned attempt ends before its work'),
  'flash-sale': shelf,
  'killed-mid-payment': clean('short work, one attempt at a time, and the state is read'),
  'failing-first': clean('short work, one attempt at a time, and the sale is rolled back'),
  cancelled: loses(
    ['chargedAfterCancel'],
    'the cancellation does not take the lock, and the state is written over it',
  ),
};

const ofNoStateCheck = {
  'double-click': sameKey,
  'double-click-new-key': loses(charges, 'a new key is a new payment to it'),
  'fifty-at-once': sameKey,
  'retry-storm': sameKey,
  'retry-storm-new-key': loses(charges, 'a new key is a new payment to it'),
  'flash-sale': ownUpdate,
  'killed-mid-payment': clean('record and sale commit together, and the retry has the same key'),
  'failing-first': clean('record and sale are rolled back together'),
  cancelled: loses(['chargedAfterCancel'], 'it never looks at the state'),
};

const ofTurngate = {
  'double-click': clean('one record per order; the second click gets the first one’s answer'),
  'double-click-new-key': clean('the key is the order number, whatever the client sends'),
  'fifty-at-once': clean('one works, the others wait for its record'),
  'retry-storm': clean('the abandoned attempt goes on, and the retry gets its answer'),
  'retry-storm-new-key': clean('the key is the order number, whatever the client sends'),
  'flash-sale': clean('one guarded UPDATE decides who gets a unit; "sold out" is not remembered'),
  'killed-mid-payment': clean('before the commit nothing is left behind, after it the record is'),
  'failing-first': clean('everything of the failed attempt is rolled back, the claim too'),
  cancelled: clean('the guarded transition and the cancellation meet in the row: one wins'),
};

export const expectations: Readonly<Record<ImplementationId, Readonly<Record<StormId, Theory>>>> = {
  'no-guard': ofNoGuard,
  'lock-only': ofLockOnly,
  'check-then-insert': ofCheckThenInsert,
  'record-outside': ofRecordOutside,
  'deleted-in-rollback': ofDeletedInRollback,
  'lease-without-renewal': ofLeaseWithoutRenewal,
  'no-state-check': ofNoStateCheck,
  turngate: ofTurngate,
};
