/** Leader election in one process over the memory store, and over stores that fail. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { LockStore } from '../../src/contract/index.ts';
import { createGate, type Election, type Gate, type Lead } from '../../src/index.ts';
import { memory, memoryLocks } from '../../src/stores/memory/index.ts';
import { door, pause, until } from '../support/clock.ts';

const unhandled: unknown[] = [];
const note = (error: unknown): void => void unhandled.push(error);
beforeAll(() => void process.on('unhandledRejection', note));
afterAll(() => {
  process.removeListener('unhandledRejection', note);
  expect(unhandled).toEqual([]);
});

const running: Election[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((election) => election.resign()));
});

function openGate(locks: LockStore): Gate<unknown> {
  return createGate({ records: memory(), locks }) as Gate<unknown>;
}

/** A candidate that writes down what happens to it and leads until its signal aborts. */
function candidate(
  gate: Gate<unknown>,
  options: {
    name?: string;
    graceAfterLossMs?: number;
    signal?: AbortSignal;
    body?: (lead: Lead) => Promise<void> | void;
  } = {},
) {
  const leads: Lead[] = [];
  const errors: unknown[] = [];
  const { name = 'office', body, ...rest } = options;
  const election = gate.elect(name, {
    ...rest,
    leaseMs: 300,
    retryMs: 20,
    onError: (error) => errors.push(error),
    async onElected(lead) {
      leads.push(lead);
      if (body !== undefined) return await body(lead);
      await new Promise((resolve) => lead.signal.addEventListener('abort', resolve));
    },
  });
  running.push(election);
  return { election, leads, errors };
}

describe('leader election', () => {
  it('has one leader at a time; the next one follows a resignation with a higher fence', async () => {
    const locks = memoryLocks();
    const candidates = [1, 2, 3].map(() => candidate(openGate(locks)));
    const seen: bigint[] = [];
    for (let turn = 0; turn < 3; turn++) {
      await until('there is a leader', () => candidates.some(({ election }) => election.leading));
      const leading = candidates.filter(({ election }) => election.leading);
      expect(leading).toHaveLength(1);
      const [leader] = leading as [(typeof candidates)[number]];
      const fence = leader.leads.at(-1)?.fence as bigint;
      expect((await candidates[0]?.election.leader())?.fence).toBe(fence);
      seen.push(fence);
      await leader.election.resign();
      expect(leader.leads.at(-1)?.signal.aborted).toBe(true);
      expect(leader.election.leading).toBe(false);
    }
    expect([...seen].sort((a, b) => (a < b ? -1 : 1))).toEqual(seen);
    expect(new Set(seen).size).toBe(3);
    expect(candidates.map(({ leads }) => leads.length)).toEqual([1, 1, 1]);
    expect(await candidates[0]?.election.leader()).toBeUndefined();
  });

  it('tells the leader of a loss, waits for its body, and is a candidate again', async () => {
    const gate = openGate(memoryLocks());
    const stubborn = door();
    const { election, leads, errors } = candidate(gate, {
      body: async ({ signal }) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        if (leads.length === 1) await stubborn.opened; // Does not stop at once.
      },
    });
    await until('it leads', () => election.leading);
    await gate.forceReleaseLock('office');
    await until('it is told', () => leads[0]?.signal.aborted === true);
    expect(leads[0]?.signal.reason).toMatchObject({ code: 'LOCK_LOST' });
    expect(() => leads[0]?.assertLeading()).toThrow(expect.objectContaining({ code: 'LOCK_LOST' }));
    expect(election.leading).toBe(false);
    await pause(100); // Several campaigns long: the office is free, but the body still runs.
    expect(leads).toHaveLength(1);
    stubborn.open();
    await until('it leads again', () => election.leading);
    expect(leads).toHaveLength(2);
    expect(errors).toEqual([]);
  });

  it('resign waits for the body before it gives the office up, and never rejects', async () => {
    const locks = memoryLocks();
    const finish = door();
    const first = candidate(openGate(locks), {
      body: async ({ signal }) => {
        await finish.opened;
        signal.throwIfAborted();
      },
    });
    await until('it leads', () => first.leads.length === 1);
    const second = candidate(openGate(locks));
    const resigned = first.election.resign();
    await pause(50);
    expect(first.leads[0]?.signal.reason).toMatchObject({ code: 'ABORTED' });
    expect(second.leads).toHaveLength(0);
    finish.open();
    expect(await resigned).toBeUndefined();
    await until('the other leads', () => second.election.leading);
    expect(first.errors).toEqual([]); // The echo of the abort is no news.
    await first.election.resign();
    await first.election.ended;
  });

  it('a body that throws, at once or later, is reported and gives the office away', async () => {
    const bodies = [
      (): void => {
        throw new Error('at once');
      },
      async () => {
        await pause(1);
        throw new Error('later');
      },
      async () => undefined,
      async ({ signal }: Lead) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
      },
    ];
    let turn = 0;
    const { election, leads, errors } = candidate(openGate(memoryLocks()), {
      body: (lead) => bodies[turn++]?.(lead),
    });
    await until('the last body leads', () => leads.length === 4 && election.leading);
    expect(errors.map((error) => (error as Error).message)).toEqual(['at once', 'later']);
  });

  it('a reporter that throws does not end the candidature', async () => {
    let turns = 0;
    const election = openGate(memoryLocks()).elect('office', {
      retryMs: 10,
      onElected() {
        if (++turns < 3) throw new Error('failed');
      },
      onError() {
        throw new Error('the reporter failed too');
      },
    });
    running.push(election);
    await until('three turns', () => turns >= 3);
  });

  it('grace: the body starts only after it, and not at all when the office is gone by then', async () => {
    const gate = openGate(memoryLocks());
    const startMs = performance.now();
    const calm = candidate(gate, { graceAfterLossMs: 150 });
    await until('the store has a leader', async () => (await calm.election.leader()) !== undefined);
    expect(calm.election.leading).toBe(false);
    await until('it leads', () => calm.election.leading);
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(149);
    await calm.election.resign();

    const robbed = candidate(gate, { name: 'other', graceAfterLossMs: 2_000 });
    await until('the store has one', async () => (await robbed.election.leader()) !== undefined);
    await robbed.election.resign(); // In the middle of its grace.
    expect(robbed.leads).toHaveLength(0);
    expect(robbed.errors).toEqual([]);
    expect(await robbed.election.leader()).toBeUndefined();
  });

  it('a store that fails is asked again, with pauses, until it answers', async () => {
    const locks = memoryLocks();
    let failing = true;
    let asked = 0;
    const flaky: LockStore = {
      name: 'flaky',
      capabilities: locks.capabilities,
      renew: (attempts) => locks.renew(attempts),
      release: (attempt) => locks.release(attempt),
      inspect: (name) => locks.inspect(name),
      async tryAcquire(attempt) {
        asked++;
        if (failing) throw new Error('connection refused');
        return await locks.tryAcquire(attempt);
      },
    };
    const { election } = candidate(openGate(flaky));
    await pause(300);
    expect(asked).toBeGreaterThan(0);
    expect(asked).toBeLessThan(200);
    failing = false;
    await until('it leads', () => election.leading, 20_000);
  });

  it('an aborted signal and a closed gate are resignations', async () => {
    const gate = openGate(memoryLocks());
    const stop = new AbortController();
    const first = candidate(gate, { signal: stop.signal });
    await until('it leads', () => first.election.leading);
    const waiting = candidate(gate);
    const never = candidate(gate, { name: 'never', signal: AbortSignal.abort() });
    await never.election.ended;
    expect(never.leads).toHaveLength(0);
    stop.abort();
    await first.election.ended;
    await until('the next leads', () => waiting.election.leading);
    await gate.close();
    await waiting.election.ended;
    expect(waiting.leads[0]?.signal.aborted).toBe(true);
    expect(await waiting.election.leader()).toBeUndefined();
  });

  it('bad options are refused before anything is asked', () => {
    const gate = openGate(memoryLocks());
    const good = { onElected: () => undefined, onError: () => undefined };
    const bad = [
      {},
      { ...good, onElected: 1 },
      { onElected: good.onElected },
      { ...good, leaseMs: 1 },
      { ...good, graceAfterLossMs: -1 },
      { ...good, retryMs: 0.5 },
      { ...good, leasMs: 300 },
    ];
    for (const options of bad) {
      expect(() => gate.elect('office', options as never)).toThrow(
        expect.objectContaining({ code: 'OPTION_INVALID' }),
      );
    }
    expect(() => gate.elect('', good)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }));
  });
});
