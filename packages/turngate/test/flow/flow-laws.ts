/** The laws of flows, the same on every database. */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { SqlSession } from '../../src/contract/sql-session.ts';
import { defineFlow, type FlowEvent, onEvent } from '../../src/index.ts';
import { door, pause } from '../support/clock.ts';

/** A database with Turngate's tables and a `shop_order` of id, status, version, note, cents, paid_at. */
export interface FlowTarget<Tx> {
  insert(id: string): Promise<unknown>;
  row(id: string): Promise<Record<string, unknown>>;
  /** The lines `version event from>to` of an entity, in order. */
  history(id: string): Promise<string[]>;
  transaction<T>(body: (tx: Tx) => Promise<T>): Promise<T>;
  /** Takes the snapshot of a transaction that has one. */
  look(tx: Tx): Promise<unknown>;
  close(): Promise<void>;
}

type Event = 'pay' | 'ship' | 'cancel';

/** The flow under test. */
export function orderFlow<Tx>(session: (tx: Tx) => SqlSession) {
  return defineFlow(
    {
      name: 'order',
      table: 'shop_order',
      states: ['created', 'paid', 'shipped', 'cancelled'],
      transitions: {
        pay: { from: ['created'], to: 'paid' },
        ship: { from: ['paid'], to: 'shipped' },
        cancel: { from: ['created', 'paid'], to: 'cancelled' },
      },
    },
    session,
  );
}

/** Registers the laws; call it inside a `describe`. */
export function flowLaws<Tx>(
  session: (tx: Tx) => SqlSession,
  open: () => Promise<FlowTarget<Tx>>,
): void {
  const order = orderFlow(session);
  let target: FlowTarget<Tx>;
  let id = '0';
  beforeAll(async () => {
    target = await open();
  });
  afterAll(() => target?.close());
  beforeEach(async () => {
    id = String(Number(id) + 1);
    await target.insert(id);
  });

  type Set = Parameters<typeof order.fire>[1]['set'];
  const fire = (event: Event, set?: Set) =>
    target.transaction((tx) => order.fire(event, { tx, id, ...(set && { set }) }));

  it('moves, says already for a repeat and for later states, refuses, and misses', async () => {
    const paid = { kind: 'applied', from: 'created', to: 'paid', version: 2n };
    expect(await fire('pay')).toEqual(paid);
    expect(await fire('pay')).toEqual({ kind: 'already', state: 'paid' });
    expect(await fire('ship')).toMatchObject({ kind: 'applied', from: 'paid', version: 3n });
    expect(await fire('pay')).toEqual({ kind: 'already', state: 'shipped' });
    expect(await fire('cancel')).toEqual({ kind: 'refused', state: 'shipped' });
    expect(await target.history(id)).toEqual(['2 pay created>paid', '3 ship paid>shipped']);
    const nobody = { id: '999999' };
    const missing = target.transaction((tx) => order.fire('pay', { tx, ...nobody }));
    expect(await missing).toEqual({ kind: 'missing' });
  });

  it('changes other columns only if it moves', async () => {
    const paidAt = new Date(1_000);
    const note = "it's $1 ? 🙂 \\";
    await fire('pay', { note, cents: 9_007_199_254_740_993n, paid_at: paidAt });
    const paid = { status: 'paid', note, cents: '9007199254740993', paid_at: paidAt };
    expect(await target.row(id)).toMatchObject(paid);
    await fire('pay', { note: 'twice' });
    expect(await target.row(id)).toMatchObject(paid);
    await fire('ship', { note: null });
    expect(await target.row(id)).toMatchObject({ status: 'shipped', note: null, version: 3 });
  });

  it('state, history and the caller’s writes roll back together', async () => {
    const undo = new Error('undo');
    const call = target.transaction(async (tx) => {
      expect((await order.fire('pay', { tx, id })).kind).toBe('applied');
      throw undo;
    });
    await expect(call).rejects.toBe(undo);
    expect(await target.row(id)).toMatchObject({ status: 'created', version: 1 });
    expect(await target.history(id)).toEqual([]);
  });

  it('of 20 at once exactly one is applied, the others say already', async () => {
    const results = await Promise.all(Array.from({ length: 20 }, () => fire('pay')));
    const kinds = results.map(({ kind }) => kind).sort();
    expect(kinds).toEqual([...Array<string>(19).fill('already'), 'applied'].sort());
    expect(await target.row(id)).toMatchObject({ status: 'paid', version: 2 });
    expect(await target.history(id)).toHaveLength(1);
  });

  it('of cancel and ship at once exactly one wins, never both', async () => {
    await fire('pay');
    const results = await Promise.all([fire('cancel'), fire('ship'), fire('cancel')]);
    expect(results.filter(({ kind }) => kind === 'applied')).toHaveLength(1);
    expect((await target.row(id))['version']).toBe(3);
  });

  it('an event that waited for the state it needs is applied, with an older snapshot too', async () => {
    const moved = door();
    const held = door();
    const paying = target.transaction(async (tx) => {
      await order.fire('pay', { tx, id });
      moved.open();
      await held.opened;
    });
    await moved.opened;
    const shipping = target.transaction(async (tx) => {
      await target.look(tx); // Its snapshot still says "created".
      return await order.fire('ship', { tx, id });
    });
    await pause(50); // It now waits for the row.
    held.open();
    await paying;
    expect(await shipping).toMatchObject({ kind: 'applied', from: 'paid', version: 3n });
    expect(await target.history(id)).toEqual(['2 pay created>paid', '3 ship paid>shipped']);
  });

  it('tells what happened', async () => {
    const seen: FlowEvent[] = [];
    const stop = onEvent('flow', (event) => seen.push(event));
    await fire('pay');
    await fire('pay');
    stop();
    await fire('pay');
    expect(seen).toEqual([
      { type: 'applied', flow: 'order', event: 'pay', id },
      { type: 'already', flow: 'order', event: 'pay', id },
    ]);
  });
}
