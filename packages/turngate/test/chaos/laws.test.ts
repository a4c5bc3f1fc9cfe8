/** The laws see what is wrong: histories by hand, and broken stores under real processes. */
import { startRedis } from '@turngate/test-servers';
import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { until } from '../support/clock.ts';
import { type Chaos, startChaos } from './conductor.ts';
import type { Effect, History, Line } from './history.ts';
import { broken, type Promises } from './laws.ts';

const all: Promises = { fences: true, exclusion: true };
const store = (t: number, verb: string, owner: string, more: Partial<Line> = {}): Line => ({
  t,
  node: owner,
  side: 'store',
  verb,
  name: 'n',
  owner,
  ...more,
});
/** An attempt that is granted at once. */
const granted = (t: number, owner: string, fence: string): Line[] => [
  store(t, 'try', owner, { phase: 'call', leaseMs: 100 }),
  store(t + 1, 'try', owner, { phase: 'ok', answer: 'granted', fence }),
];
const released = (t: number, owner: string): Line => store(t, 'release', owner, { phase: 'call' });
const renewed = (t: number, owner: string): Line[] => [
  store(t, 'renew', owner, { phase: 'call', leaseMs: 100 }),
  store(t + 1, 'renew', owner, { phase: 'ok', answer: 'ours' }),
];
const history = (lines: readonly Line[], more: Partial<History> = {}): History => ({
  lines: [...lines].sort((a, b) => a.t - b.t),
  fenced: new Map(),
  raw: new Map(),
  faults: { frozen: [], killed: new Map(), storeLost: [] },
  ...more,
});
const effect = (n: number, fence: number): Effect => ({ n, id: `turn ${n}`, fence: String(fence) });
const client = (t: number, phase: 'call' | 'ok' | 'fail', more: Partial<Line> = {}): Line => ({
  t,
  node: 'w',
  side: 'client',
  verb: 'acquire',
  phase,
  name: 'n',
  id: 'turn',
  ...more,
});

describe('the laws of a history', () => {
  it('in order: nothing is broken', () => {
    const lines = [...granted(0, 'a', '1'), released(50, 'a'), ...granted(60, 'b', '2')];
    const effects = new Map([['n', [effect(1, 1), effect(2, 2)]]]);
    expect(broken(history(lines, { fenced: effects, raw: effects }), all)).toEqual([]);
    // After the lease, without a release: also in order.
    expect(broken(history([...granted(0, 'a', '1'), ...granted(120, 'b', '2')]), all)).toEqual([]);
  });

  it('two grants that live at one time, also by a renewal', () => {
    const two = history([...granted(0, 'a', '1'), ...granted(50, 'b', '2')]);
    expect(broken(two, all)).toEqual([expect.stringContaining('both held for 49 ms')]);
    const lines = [...granted(0, 'a', '1'), ...renewed(90, 'a'), ...granted(150, 'b', '2')];
    expect(broken(history(lines), all)).toEqual([expect.stringContaining('both held for 39 ms')]);
  });

  it('a store that forgot by our doing is excused, its fences are not', () => {
    const storeLost = [{ from: 20, to: 30 }];
    const faults = { frozen: [], killed: new Map(), storeLost };
    const lines = [...granted(0, 'a', '5'), ...granted(50, 'b', '4')];
    const wrong = broken(history(lines, { faults }), all);
    expect(wrong).toContainEqual(expect.stringContaining('was known before'));
    expect(wrong.join()).not.toContain('both held');
  });

  it('a fence that goes to two', () => {
    const lines = [...granted(0, 'a', '1'), released(50, 'a'), ...granted(60, 'b', '1')];
    expect(broken(history(lines), all)).toContainEqual('n: fence 1 went to a and b');
  });

  it('a late write that was accepted, and an update that was lost', () => {
    const late = new Map([['n', [effect(1, 2), effect(2, 1)]]]);
    expect(broken(history([], { fenced: late }), all)).toHaveLength(1);
    const lost = new Map([['n', [effect(1, 1), effect(1, 2)]]]);
    expect(broken(history([], { fenced: lost }), all)).toHaveLength(1);
    expect(broken(history([], { raw: lost }), all)).toHaveLength(1);
  });

  it('a waiter that waits too long, or for ever; time in which it was frozen does not count', () => {
    const lines = [client(0, 'call', { waitMs: 100 }), client(1_500, 'fail', { code: 'BUSY' })];
    expect(broken(history(lines), all)).toEqual(['turn: waited 1500 ms of 1100']);
    const frozen = [{ node: 'w', from: 200, to: 1_000 }];
    const faults = { frozen, killed: new Map(), storeLost: [] };
    expect(broken(history(lines, { faults }), all)).toEqual([]);
    expect(broken(history(lines.slice(0, 1)), all)).toEqual(['turn: neither granted nor refused']);
  });

  it('an unhandled rejection', () => {
    const line: Line = { t: 0, node: 'w', side: 'process', verb: 'unhandled', code: 'x' };
    expect(broken(history([line]), all)).toEqual(['w: unhandled x']);
  });
});

/** Forgets everything under a holder that stays. */
async function flushUnderHolder(chaos: Chaos, url: string): Promise<void> {
  const holder = chaos.chance.pick(chaos.workers);
  await holder.holdNext();
  const admin = new Redis(url);
  const at = await chaos.storeLoses(() => admin.flushall());
  admin.disconnect();
  await chaos.takenOver(at, { but: holder, grants: 3 });
  const renewals = () =>
    chaos
      .lines()
      .filter((line) => line.t > at + 500 && line.verb === 'renew' && line.phase === 'ok');
  await until('it was renewed', () => renewals().length > 0);
  await chaos.works(5);
  holder.goOn();
}

describe('broken stores are seen', () => {
  const mutants: [name: string, sign: RegExp, harm?: typeof flushUnderHolder][] = [
    ['no exclusion', /unprotected counter|both held/],
    ['one fence for all', /fence 7 went to/],
    ['renewal without an owner check', /unprotected counter/, flushUnderHolder],
  ];
  for (const [mutant, sign, harm] of mutants) {
    it(mutant, async () => {
      await using redis = await startRedis();
      const target = { kind: 'redis', url: redis.url };
      await using chaos = await startChaos({ store: target, mutant });
      if (harm === undefined) await chaos.works(30);
      else await harm(chaos, redis.url);
      const wrong = await chaos.finish(all);
      expect(wrong).toContainEqual(expect.stringMatching(sign));
    });
  }
});
