/** All implementations under test, in the order of the report. */
import type { Pool } from 'pg';
import type { Payer } from './payment.ts';
import { turngate } from './right/turngate.ts';
import { checkThenInsert } from './wrong/check-then-insert.ts';
import { deletedInRollback } from './wrong/deleted-in-rollback.ts';
import { leaseWithoutRenewal } from './wrong/lease-without-renewal.ts';
import { lockOnly } from './wrong/lock-only.ts';
import { noGuard } from './wrong/no-guard.ts';
import { noStateCheck } from './wrong/no-state-check.ts';
import { recordOutside } from './wrong/record-outside.ts';

export interface Implementation {
  readonly title: string;
  /** What it does, in one sentence. */
  readonly idea: string;
  readonly wrong: boolean;
  open(pool: Pool): Payer;
}

export const implementations = {
  'no-guard': {
    title: 'no guard',
    idea: 'Reads the order, works, writes: no lock, no record, no transaction.',
    wrong: true,
    open: noGuard,
  },
  'lock-only': {
    title: 'lock only',
    idea: 'A lock per order taken for idempotency: repeats come one after the other, and all come in.',
    wrong: true,
    open: lockOnly,
  },
  'check-then-insert': {
    title: 'check, then insert',
    idea: 'Looks for the record, works, inserts it; there is no unique index.',
    wrong: true,
    open: checkThenInsert,
  },
  'record-outside': {
    title: 'record outside the transaction',
    idea: 'Writes the record through another connection than the sale, so it survives a rollback.',
    wrong: true,
    open: recordOutside,
  },
  'deleted-in-rollback': {
    title: 'record deleted in the rollback',
    idea: 'Claims the key first; after an error deletes the claim inside the transaction that rolls back.',
    wrong: true,
    open: deletedInRollback,
  },
  'lease-without-renewal': {
    title: 'lease without renewal',
    idea: 'Lock per order plus a look at the state, with a lease of 120 ms that nobody renews.',
    wrong: true,
    open: leaseWithoutRenewal,
  },
  'no-state-check': {
    title: 'no state check',
    idea: 'A correct record per request key, and no look at the state of the order.',
    wrong: true,
    open: noStateCheck,
  },
  turngate: {
    title: 'turngate',
    idea: 'One operation per order number; record, state and stock in one transaction.',
    wrong: false,
    open: turngate,
  },
} as const satisfies Record<string, Implementation>;

export type ImplementationId = keyof typeof implementations;

export const implementationIds = Object.keys(implementations) as ImplementationId[];
