/** The operation engine on the memory store, where time and failures can be arranged. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { RecordStore } from '../src/contract/index.ts';
import {
  createGate,
  type IdempotencyEvent,
  type Operation,
  onEvent,
  refuse,
} from '../src/index.ts';
import { type MemoryTx, memory, memoryLocks } from '../src/stores/memory/index.ts';
import { door, ManualRuntime, turn } from './support/clock.ts';
import { rejection } from './support/errors.ts';

interface Pay {
  readonly orderNo: string;
  readonly amount?: number;
}

const events: IdempotencyEvent[] = [];
let stop: () => void;
beforeAll(() => {
  stop = onEvent('idempotency', (event) => events.push(event));
});
afterAll(() => stop());
beforeEach(() => {
  events.length = 0;
});

function typesOf(key: string): string[] {
  return events.filter((event) => event.key === key).map(({ type }) => type);
}

function setUp() {
  const runtime = new ManualRuntime();
  const store = memory({ runtime });
  const gate = createGate({ records: store, locks: memoryLocks({ runtime }), runtime });
  return { runtime, store, gate };
}

const key = ({ orderNo }: Pay): string => orderNo;

describe('one run per key', () => {
  it('50 calls at once: one runs, 49 get its value as a replay', async () => {
    const { gate } = setUp();
    let runs = 0;
    let effects = 0;
    const held = door();
    const pay = gate.operation({
      name: 'pay',
      key,
      run: async (_input: Pay, { tx }) => {
        runs++;
        await held.opened;
        tx.write(() => effects++);
        return { at: new Date(5), n: runs };
      },
    });
    const calls = Array.from({ length: 50 }, () => pay({ orderNo: 'a' }));
    await turn();
    expect(gate.load.inFlight).toBe(1);
    held.open();
    const outcomes = await Promise.all(calls);
    expect([runs, effects]).toEqual([1, 1]);
    expect(outcomes.filter(({ replayed }) => !replayed)).toHaveLength(1);
    for (const { value } of outcomes) expect(value).toStrictEqual({ at: new Date(5), n: 1 });
    expect(outcomes[0]?.replayed).toBe(false);
    expect(new Set(outcomes.map(({ value }) => value)).size).toBe(50);
    expect(gate.load.inFlight).toBe(0);
  });

  it('the first caller, too, gets the value after the round trip', async () => {
    const { gate } = setUp();
    const made = { bytes: Buffer.from([1]), gone: undefined };
    const pay = gate.operation({ name: 'pay', key, run: (_: Pay) => made });
    const first = await pay({ orderNo: 'a' });
    const again = await pay({ orderNo: 'a' });
    expect(first.value).not.toBe(made);
    expect(first.value).toStrictEqual({ bytes: new Uint8Array([1]), gone: undefined });
    expect(again.value).toStrictEqual(first.value);
    expect(again.firstProcessedAt).toEqual(first.firstProcessedAt);
  });

  it('scopes, operations and keys do not meet', async () => {
    const { gate } = setUp();
    let runs = 0;
    const run = (): number => ++runs;
    const scoped = gate.operation({
      name: 'pay',
      key,
      scope: (input: Pay & { tenant: string }) => input.tenant,
      run,
    });
    const other = gate.operation({ name: 'refund', key, run });
    await scoped({ orderNo: 'a', tenant: 't1' });
    await scoped({ orderNo: 'a', tenant: 't2' });
    await scoped({ orderNo: 'b', tenant: 't1' });
    await other({ orderNo: 'a' });
    expect(runs).toBe(4);
    expect((await scoped({ orderNo: 'a', tenant: 't2' })).value).toBe(2);
  });

  it('after the retention the key runs again', async () => {
    const { gate, runtime } = setUp();
    let runs = 0;
    const pay = gate.operation({ name: 'pay', key, retentionMs: 5_000, run: (_: Pay) => ++runs });
    await pay({ orderNo: 'a' });
    await runtime.advance(4_999);
    expect((await pay({ orderNo: 'a' })).value).toBe(1);
    await runtime.advance(1);
    expect((await pay({ orderNo: 'a' })).value).toBe(2);
  });
});

describe('another payload under the same key', () => {
  it('is IDEMPOTENCY_KEY_REUSED, in flight, remembered, and from the record; the first is unharmed', async () => {
    const { gate, store, runtime } = setUp();
    const held = door();
    const declaration = { name: 'pay', key, run: () => held.opened.then(() => 'ok') };
    const pay = gate.operation<Pay, string>(declaration);
    const elsewhere = createGate({ records: store, runtime }).operation<Pay, string>(declaration);
    const first = pay({ orderNo: 'a', amount: 1 });
    await turn();
    await rejection(pay({ orderNo: 'a', amount: 2 }), 'IDEMPOTENCY_KEY_REUSED');
    await rejection(elsewhere({ orderNo: 'a', amount: 2 }), 'IDEMPOTENCY_KEY_REUSED');
    held.open();
    expect((await first).value).toBe('ok');
    await rejection(pay({ orderNo: 'a', amount: 2 }), 'IDEMPOTENCY_KEY_REUSED');
    await rejection(elsewhere({ orderNo: 'a', amount: 2 }), 'IDEMPOTENCY_KEY_REUSED');
    expect((await pay({ orderNo: 'a', amount: 1 })).replayed).toBe(true);
    expect(typesOf('a').filter((type) => type === 'key-reused')).toHaveLength(4);
  });

  it('is told before DUPLICATE_REQUEST and REQUEST_IN_PROGRESS', async () => {
    const { gate } = setUp();
    const held = door();
    const pay = gate.operation<Pay, void>({
      name: 'pay',
      key,
      repeat: 'reject',
      inFlight: 'reject',
      run: () => held.opened,
    });
    const first = pay({ orderNo: 'a', amount: 1 });
    await turn();
    await rejection(pay({ orderNo: 'a', amount: 2 }), 'IDEMPOTENCY_KEY_REUSED');
    await rejection(pay({ orderNo: 'a', amount: 1 }), 'REQUEST_IN_PROGRESS');
    held.open();
    await first;
    await rejection(pay({ orderNo: 'a', amount: 2 }), 'IDEMPOTENCY_KEY_REUSED');
    const duplicate = await rejection(pay({ orderNo: 'a', amount: 1 }), 'DUPLICATE_REQUEST');
    expect(duplicate).toMatchObject({ replayed: true, firstProcessedAt: expect.any(Date) });
  });

  it('compares only what the declaration selects, at the moment of the call', async () => {
    const { gate } = setUp();
    const pay = gate.operation({
      name: 'pay',
      key,
      fingerprint: ({ amount }: Pay) => amount,
      run: (input: Pay & { note?: string }) => input.note ?? null,
    });
    const input = { orderNo: 'a', amount: 1, note: 'x' };
    const first = pay(input);
    input.amount = 2; // The caller's later changes are not the request's.
    await first;
    expect((await pay({ orderNo: 'a', amount: 1, note: 'y' })).value).toBe('x');
    await rejection(pay({ orderNo: 'a', amount: 2 }), 'IDEMPOTENCY_KEY_REUSED');
  });
});

describe('work that fails', () => {
  it('frees the key: the next call runs', async () => {
    const { gate, store } = setUp();
    const boom = new Error('boom');
    let runs = 0;
    const pay = gate.operation({
      name: 'pay',
      key,
      run: (_: Pay) => {
        if (++runs === 1) throw boom;
        return 'ok';
      },
    });
    expect(await rejection(pay({ orderNo: 'a' }))).toBe(boom);
    expect(await store.read({ operation: 'pay', scope: '-', key: 'a' })).toBeUndefined();
    expect(await pay({ orderNo: 'a' })).toMatchObject({ value: 'ok', replayed: false });
    expect(typesOf('a')).toEqual(['started', 'released', 'ended', 'started', 'ended', 'first']);
  });

  it('with 50 callers runs at most twice, and all of them get the error', async () => {
    const { gate } = setUp();
    let runs = 0;
    const pay = gate.operation<Pay, void>({
      name: 'pay',
      key,
      run: async () => {
        runs++;
        await turn();
        throw new Error(`boom ${runs}`);
      },
    });
    const calls = Array.from({ length: 50 }, () => rejection(pay({ orderNo: 'a' })));
    const messages = new Set((await Promise.all(calls)).map(({ message }) => message));
    expect(runs).toBe(2);
    expect(messages).toEqual(new Set(['boom 1', 'boom 2']));
    expect(gate.load.inFlight).toBe(0);
  });

  it('a refusal is remembered with its data and without its effect', async () => {
    const { gate } = setUp();
    let runs = 0;
    let effects = 0;
    const pay = gate.operation({
      name: 'pay',
      key,
      run: (_: Pay, { tx }): string => {
        runs++;
        tx.write(() => effects++);
        throw refuse('OUT_OF_STOCK', 'none left', { left: 0n });
      },
    });
    const first = await rejection(pay({ orderNo: 'a' }), 'REFUSED');
    const again = await rejection(pay({ orderNo: 'a' }), 'REFUSED');
    const refusal = { code: 'OUT_OF_STOCK', message: 'none left', data: { left: 0n } };
    expect(first).toMatchObject({ refusal, replayed: false, outcome: 'not-applied' });
    expect(again).toMatchObject({ refusal, replayed: true });
    expect([runs, effects]).toEqual([1, 0]);
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'refused', refusal: 'OUT_OF_STOCK' }),
    );
  });

  it('a result that cannot be stored rolls the work back', async () => {
    const { gate } = setUp();
    let effects = 0;
    const pay = gate.operation({
      name: 'pay',
      key,
      resultCharsMax: 1_000,
      run: ({ amount }: Pay, { tx }): unknown => {
        tx.write(() => effects++);
        return amount === 1 ? () => 1 : 'x'.repeat(1_000);
      },
    });
    await rejection(pay({ orderNo: 'a', amount: 1 }), 'RESULT_INVALID');
    await rejection(pay({ orderNo: 'a', amount: 2 }), 'RESULT_INVALID');
    expect(effects).toBe(0);
  });

  it('within its own transaction and its own key is refused, with another key is not', async () => {
    const { gate } = setUp();
    const pay: Operation<MemoryTx, Pay, number> = gate.operation({
      name: 'pay',
      key,
      run: async ({ amount = 0 }: Pay, { tx }) => {
        if (amount === 0) return 0;
        const same = amount === 9;
        const input = { orderNo: same ? 'a' : `a${amount}`, amount: same ? 9 : 0 };
        const inner = await (same ? pay.within(tx, input) : pay(input));
        return inner.value + 1;
      },
    });
    await rejection(pay({ orderNo: 'a', amount: 9 }), 'OPERATION_NESTED');
    expect((await pay({ orderNo: 'a', amount: 1 })).value).toBe(1);
  });
});

describe('waiting', () => {
  it('ends at waitMs in REQUEST_IN_PROGRESS with a time to come back, here and elsewhere', async () => {
    const { gate, store, runtime } = setUp();
    const held = door();
    const declaration = { name: 'pay', key, waitMs: 2_500, run: () => held.opened };
    const pay = gate.operation<Pay, void>(declaration);
    const elsewhere = createGate({ records: store, runtime }).operation<Pay, void>(declaration);
    const first = pay({ orderNo: 'a' });
    await turn();
    const here = rejection(pay({ orderNo: 'a' }), 'REQUEST_IN_PROGRESS');
    const there = rejection(elsewhere({ orderNo: 'a' }), 'REQUEST_IN_PROGRESS');
    let settled = 0;
    for (const call of [here, there]) void call.then(() => settled++);
    await runtime.advance(2_400);
    expect(settled).toBe(0);
    await runtime.advance(400);
    expect(settled).toBe(2);
    expect(await here).toMatchObject({ retryAfterMs: 3_000, outcome: 'unknown' });
    expect((await there)['retryAfterMs']).toBe(3_000);
    held.open();
    await first;
    expect((await elsewhere({ orderNo: 'a' })).replayed).toBe(true);
    expect(runtime.pendingTimers).toBe(0);
  });

  it('waitMs 0 does not wait, a free key runs all the same', async () => {
    const { gate, store, runtime } = setUp();
    const held = door();
    const declaration = { name: 'pay', key, waitMs: 0, run: () => held.opened };
    const pay = gate.operation<Pay, void>(declaration);
    const elsewhere = createGate({ records: store, runtime }).operation<Pay, void>(declaration);
    const first = pay({ orderNo: 'a' });
    await turn();
    await rejection(pay({ orderNo: 'a' }), 'REQUEST_IN_PROGRESS');
    await rejection(elsewhere({ orderNo: 'a' }), 'REQUEST_IN_PROGRESS');
    held.open();
    await first;
  });

  it('a caller who aborts is told so; the work goes on, and a retry gets its result', async () => {
    const { gate } = setUp();
    const held = door();
    let runs = 0;
    const pay = gate.operation<Pay, number>({
      name: 'pay',
      key,
      run: () => held.opened.then(() => ++runs),
    });
    const reason = new Error('client went away');
    const [leader, follower, early] = [1, 2, 3].map(() => new AbortController());
    early?.abort(reason);
    await rejection(pay({ orderNo: 'b' }, { signal: early!.signal }), 'ABORTED');
    const first = rejection(pay({ orderNo: 'a' }, { signal: leader!.signal }), 'ABORTED');
    const second = rejection(pay({ orderNo: 'a' }, { signal: follower!.signal }), 'ABORTED');
    await turn();
    leader?.abort(reason);
    follower?.abort(reason);
    expect(await first).toMatchObject({ cause: reason, outcome: 'unknown' });
    expect((await second)['cause']).toBe(reason);
    expect(gate.load.inFlight).toBe(1);
    held.open();
    expect(await pay({ orderNo: 'a' })).toMatchObject({ value: 1, replayed: true });
    expect(runs).toBe(1);
  });

  it('an aborted caller whose work then fails leaves no unhandled rejection', async () => {
    const { gate } = setUp();
    const held = door();
    const pay = gate.operation<Pay, void>({
      name: 'pay',
      key,
      run: async () => {
        await held.opened;
        throw new Error('later');
      },
    });
    const controller = new AbortController();
    const call = rejection(pay({ orderNo: 'a' }, { signal: controller.signal }), 'ABORTED');
    await turn();
    controller.abort();
    await call;
    held.open();
    await turn();
    await turn();
    expect(gate.load.inFlight).toBe(0);
  });
});

describe('the store comes last', () => {
  it('options, keys and aborted signals are refused before any I/O', async () => {
    const touched = (): never => {
      throw new Error('the store was touched');
    };
    const store = new Proxy({ attempt: touched } as unknown as RecordStore<MemoryTx>, {
      get: (_, name) => (name === 'name' ? 'trap' : touched),
    });
    const gate = createGate({ records: store });
    const good = { name: 'pay', key, run: () => 1 };
    const bad: object[] = [
      { name: 'Pay' },
      { key: 'a' },
      { run: undefined },
      { scope: 'tenant' },
      { fingerprint: 1 },
      { repeat: 'again' },
      { inFlight: 'queue' },
      { waitMs: -1 },
      { waitMs: 0.5 },
      { waitMs: Number.NaN },
      { waitMs: 600_001 },
      { retentionMs: 999 },
      { retentionMs: '1000' },
      { resultCharsMax: 999 },
      { keySource: 1 },
      { ttl: 5 },
      { lockOptions: { leaseMs: 1_000 } }, // Without a lock.
      { lock: () => 'x' }, // No lock store.
    ];
    for (const part of bad) {
      const declare = (): unknown => gate.operation({ ...good, ...part } as never);
      expect(declare, JSON.stringify(part)).toThrow(
        expect.objectContaining({ code: 'OPTION_INVALID' }),
      );
    }
    expect(gate.operations).toEqual([]);
    const pay = gate.operation<Pay, number>(good);
    expect(() => gate.operation(good as never)).toThrow('declared once');
    await rejection(pay({ orderNo: '' }), 'IDEMPOTENCY_KEY_MISSING');
    await rejection(pay({ orderNo: 5 as never }), 'IDEMPOTENCY_KEY_INVALID');
    await rejection(pay({ orderNo: 'a', amount: 2 ** 60 }), 'OPTION_INVALID');
    await rejection(pay({ orderNo: 'a' }, { signal: AbortSignal.abort() }), 'ABORTED');
    await rejection(pay.within({} as MemoryTx, { orderNo: '' }), 'IDEMPOTENCY_KEY_MISSING');
    for (const options of [{}, { records: 1 }, { records: store, locks: {} }, { record: store }]) {
      expect(() => createGate(options as never)).toThrow(
        expect.objectContaining({ code: 'OPTION_INVALID' }),
      );
    }
  });

  it('finished keys are answered from memory without a store call; memory off changes nothing', async () => {
    for (const memoryCharsMax of [1_000_000, 0]) {
      let calls = 0;
      const inner = memory();
      const store = new Proxy(inner, {
        get(target, name) {
          const member = Reflect.get(target, name);
          if (typeof member !== 'function') return member;
          calls++;
          return member.bind(target);
        },
      });
      const gate = createGate({ records: store, memoryCharsMax });
      const pay = gate.operation({ name: 'pay', key, run: (_: Pay) => 'ok' });
      await pay({ orderNo: 'a' });
      calls = 0;
      expect(await pay({ orderNo: 'a' })).toMatchObject({ value: 'ok', replayed: true });
      expect(calls).toBe(memoryCharsMax === 0 ? 1 : 0);
    }
  });

  it('reading first, where repeats are the rule, gives the same answers', async () => {
    const { store, runtime } = setUp();
    let reads = 0;
    const counting = new Proxy(store, {
      get(target, name) {
        if (name === 'read') reads++;
        const member = Reflect.get(target, name);
        return typeof member === 'function' ? member.bind(target) : member;
      },
    });
    const gate = createGate({ records: counting, memoryCharsMax: 0, runtime });
    let runs = 0;
    const pay = gate.operation({ name: 'pay', key, run: (_: Pay) => ++runs });
    const answers: unknown[] = [];
    for (let i = 0; i < 60; i++) answers.push(await pay({ orderNo: 'hot' }));
    expect(reads).toBeGreaterThan(0);
    expect(reads).toBeLessThan(60);
    expect(new Set(answers.slice(1).map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect((await pay({ orderNo: 'new' })).value).toBe(2);
    await rejection(pay({ orderNo: 'hot', amount: 3 }), 'IDEMPOTENCY_KEY_REUSED');
    const before = reads;
    for (let i = 0; i < 100; i++) await pay({ orderNo: `n${i}` });
    const whileNew = reads - before;
    expect(whileNew).toBeLessThan(60); // Adapts back to claiming at once.
    expect(runs).toBe(102);
  });
});

describe('closing the gate', () => {
  it('waits for what runs, refuses what is new, answers what is known', async () => {
    const { gate, store } = setUp();
    const held = door();
    const pay = gate.operation({
      name: 'pay',
      key,
      run: ({ orderNo }: Pay) => (orderNo === 'slow' ? held.opened.then(() => 'ok') : 'ok'),
    });
    await pay({ orderNo: 'known' });
    const slow = pay({ orderNo: 'slow' });
    await turn();
    let closed = false;
    const closing = gate.close().then(() => {
      closed = true;
    });
    await rejection(pay({ orderNo: 'new' }), 'GATE_CLOSED');
    await rejection(gate.acquire('x'), 'GATE_CLOSED');
    await rejection(
      store.transaction((tx) => pay.within(tx, { orderNo: 'new' })),
      'GATE_CLOSED',
    );
    expect((await pay({ orderNo: 'known' })).replayed).toBe(true);
    await turn();
    expect(closed).toBe(false);
    held.open();
    await closing;
    expect((await slow).value).toBe('ok');
    expect(gate.load).toEqual({ inFlight: 0, locksHeld: 0 });
    await gate.close();
  });

  it('stops waiting after graceMs', async () => {
    const { gate, runtime } = setUp();
    const pay = gate.operation<Pay, void>({ name: 'pay', key, run: () => new Promise(() => {}) });
    void pay({ orderNo: 'a' });
    await turn();
    const closing = gate.close({ graceMs: 1_000 });
    await runtime.advance(1_000);
    await closing;
    expect(gate.load.inFlight).toBe(1);
  });

  it('is told to handlers by their signal', async () => {
    const { gate } = setUp();
    const pay = gate.operation<Pay, string>({
      name: 'pay',
      key,
      run: (_, { signal }) =>
        new Promise((resolve) => signal.addEventListener('abort', () => resolve('stopped'))),
    });
    const call = pay({ orderNo: 'a' });
    await turn();
    await gate.close();
    expect((await call).value).toBe('stopped');
  });
});

describe('under a lock', () => {
  it('different keys compete one after the other, with growing fences; repeats do not lock', async () => {
    const { gate } = setUp();
    const fences: bigint[] = [];
    let inside = 0;
    let most = 0;
    const pay = gate.operation({
      name: 'pay',
      key,
      lock: () => 'account 1',
      run: async (_: Pay, { fence }) => {
        most = Math.max(most, ++inside);
        await turn();
        inside--;
        fences.push(fence as bigint);
        return null;
      },
    });
    await Promise.all(Array.from({ length: 20 }, (_, i) => pay({ orderNo: `k${i}` })));
    expect(most).toBe(1);
    expect(fences).toHaveLength(20);
    expect([...fences].sort((a, b) => (a < b ? -1 : 1))).toEqual(fences);
    const held = await gate.acquire('account 1');
    expect((await pay({ orderNo: 'k3' })).replayed).toBe(true);
    await held.release();
    expect(gate.load.locksHeld).toBe(0);
  });

  it('is not committed under a lock that was lost', async () => {
    const { gate, runtime } = setUp();
    let effects = 0;
    const held = door();
    const pay = gate.operation({
      name: 'pay',
      key,
      lock: () => 'x',
      lockOptions: { leaseMs: 1_000, renew: false },
      run: async (_: Pay, { tx }) => {
        tx.write(() => effects++);
        await held.opened;
      },
    });
    const call = rejection(pay({ orderNo: 'a' }), 'LOCK_LOST');
    await turn();
    await runtime.advance(1_000);
    held.open();
    expect(await call).toMatchObject({ outcome: 'not-applied' });
    expect(effects).toBe(0);
    expect((await pay({ orderNo: 'a' })).replayed).toBe(false);
    expect(effects).toBe(1);
  });

  it('that is held by another ends in BUSY and frees the key', async () => {
    const { gate, runtime } = setUp();
    const pay = gate.operation({
      name: 'pay',
      key,
      lock: () => 'x',
      lockOptions: { waitMs: 500 },
      run: (_: Pay) => 'ok',
    });
    const held = await gate.acquire('x');
    const busy = rejection(pay({ orderNo: 'a' }), 'BUSY');
    await runtime.advance(600);
    await busy;
    await held.release();
    expect((await pay({ orderNo: 'a' })).replayed).toBe(false);
  });
});

describe('conflicts', () => {
  it('are retried whole, and end in TRANSACTION_CONFLICT after six', async () => {
    const { runtime, store } = setUp();
    let conflicts = 3;
    let attempts = 0;
    const cause = new Error('deadlock');
    const flaky: RecordStore<MemoryTx> = {
      name: 'flaky',
      capabilities: store.capabilities,
      read: (id) => store.read(id),
      async attempt(claim, work) {
        attempts++;
        if (conflicts-- > 0) return { kind: 'conflict', cause };
        return await store.attempt(claim, work);
      },
      within: (tx, claim, work) => store.within(tx, claim, work),
      probe: (claim) => store.probe(claim),
      purge: (limit) => store.purge(limit),
    };
    const gate = createGate({ records: flaky, runtime });
    const pay = gate.operation({ name: 'pay', key, run: (_: Pay) => 'ok' });
    const call = pay({ orderNo: 'a' });
    await runtime.advance(2_000);
    expect((await call).value).toBe('ok');
    expect(attempts).toBe(4);
    conflicts = 100;
    attempts = 0;
    const hopeless = rejection(pay({ orderNo: 'b' }), 'TRANSACTION_CONFLICT');
    await runtime.advance(2_000);
    expect((await hopeless)['cause']).toBe(cause);
    expect(attempts).toBe(6);
  });
});
