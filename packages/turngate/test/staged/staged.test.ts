/** The laws of staged operations, on every store. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { providerKeyOf, refuse, type StagedContext, TurngateError } from '../../src/index.ts';
import { door, until } from '../support/clock.ts';
import { rejection } from '../support/errors.ts';
import { Mortal } from './faults.ts';
import { type AnyTx, type Target, targets } from './targets.ts';

interface Order {
  readonly key: string;
  readonly amount?: number;
}
type Context = StagedContext<AnyTx>;

/** A provider that honours its keys; it counts calls and effects. */
class Provider {
  readonly calls: string[] = [];
  readonly effects = new Map<string, string>();

  readonly charge = (providerKey: string): string => {
    this.calls.push(providerKey);
    const known = this.effects.get(providerKey);
    if (known !== undefined) return known;
    const id = `charge-${this.effects.size + 1}`;
    this.effects.set(providerKey, id);
    return id;
  };
}

describe.each(targets)('staged operations on $name', { timeout: 15_000 }, ({ open }) => {
  let target: Target;
  let provider: Provider;
  let counter = 0;
  let key = '';

  beforeAll(async () => {
    target = await open();
  });
  afterAll(() => target?.close());
  beforeEach(() => {
    key = `k${++counter}.`;
    base = { ...base, name: `order.place${counter}` };
    provider = new Provider();
  });

  /** A name per test: sweepers take up whatever is due under theirs. */
  let base = { name: '', key: (input: Order) => input.key, leaseMs: 500 };
  const id = () => ({ operation: base.name, scope: '-', key });
  const state = async () => (await target.store.read(id()))?.state;
  const stepNames = async () => (await target.store.inspect(id()))?.steps.map(({ name }) => name);

  /** Charges, books in the database, ships; `lines` and the provider tell what happened. */
  const place = async (_: Order, { step, now }: Context) => {
    const paid = await step('charge', provider.charge);
    const at = await now();
    await step('book', { tx: true }, (tx) => target.effect(tx, `${key}book`));
    const shipped = await step('ship', provider.charge);
    return { paid, shipped, at };
  };

  /** Waits until the lease of an abandoned operation has ended. */
  const due = () =>
    until('the operation is due', async () => {
      const record = await target.store.read(id());
      return record?.dueInMs !== undefined && record.dueInMs <= 0;
    });

  describe('once', () => {
    it('runs the steps once, replays the first result, with the codec’s types', async () => {
      const run = target.gate().stagedOperation({ ...base, run: place });
      const first = await run({ key });
      expect(first).toMatchObject({
        replayed: false,
        value: { paid: 'charge-1', shipped: 'charge-2' },
      });
      expect(first.value.at).toBeInstanceOf(Date);
      expect(await run({ key })).toEqual({ ...first, replayed: true });
      expect(provider.calls).toEqual([providerKeyOf(id(), 'charge'), providerKeyOf(id(), 'ship')]);
      expect(await target.lines(key)).toEqual([`${key}book`]);
    });

    it('50 calls over two gates: one run, 49 equal replays', async () => {
      const runs = [target.gate(), target.gate()].map((gate) =>
        gate.stagedOperation({ ...base, run: place }),
      );
      const calls = Array.from({ length: 50 }, (_, i) => runs[i % 2]!({ key }));
      const outcomes = await Promise.all(calls);
      expect(outcomes.filter(({ replayed }) => !replayed)).toHaveLength(1);
      expect(new Set(outcomes.map(({ value }) => JSON.stringify(value))).size).toBe(1);
      expect(provider.calls).toHaveLength(2);
      expect(await target.lines(key)).toEqual([`${key}book`]);
    });

    it('another payload is told so while the first runs here and elsewhere, then also', async () => {
      const held = door();
      const begun = door();
      const run = target.gate().stagedOperation({
        ...base,
        async run(_: Order, { step }) {
          begun.open();
          await held.opened;
          return await step('charge', provider.charge);
        },
      });
      const elsewhere = target.gate().stagedOperation({ ...base, run: place });
      const first = run({ key, amount: 1 });
      await begun.opened;
      await rejection(run({ key, amount: 2 }), 'IDEMPOTENCY_KEY_REUSED');
      await rejection(elsewhere({ key, amount: 2 }), 'IDEMPOTENCY_KEY_REUSED');
      held.open();
      await first;
      await rejection(elsewhere({ key, amount: 2 }), 'IDEMPOTENCY_KEY_REUSED');
    });

    it('in flight elsewhere: rejected or waited for, as declared', async () => {
      const held = door();
      const begun = door();
      const run = target.gate().stagedOperation({
        ...base,
        async run() {
          begun.open();
          await held.opened;
          return 1;
        },
      });
      const first = run({ key });
      await begun.opened;
      const gate = target.gate();
      const hasty = gate.stagedOperation({ ...base, inFlight: 'reject', run: place });
      expect(await rejection(hasty({ key }), 'REQUEST_IN_PROGRESS')).toMatchObject({
        retryAfterMs: 1_000,
      });
      const patient = target.gate().stagedOperation({ ...base, waitMs: 60, run: place });
      await rejection(patient({ key }), 'REQUEST_IN_PROGRESS');
      held.open();
      await first;
      expect(await hasty({ key })).toMatchObject({ value: 1, replayed: true });
    });

    it('a refusal, of the handler or of a step, is stored and replayed', async () => {
      const run = target.gate().stagedOperation({
        ...base,
        async run(_: Order, { step }) {
          return await step('charge', (providerKey) => {
            provider.charge(providerKey);
            throw refuse('DECLINED', 'no cover', { by: 1n });
          });
        },
      });
      expect(await rejection(run({ key }), 'REFUSED')).toMatchObject({ replayed: false });
      const again = await rejection(run({ key }), 'REFUSED');
      expect(again).toMatchObject({
        replayed: true,
        refusal: { code: 'DECLINED', data: { by: 1n } },
      });
      expect(provider.calls).toHaveLength(1);
    });
  });

  describe('failures', () => {
    it('before anything outside began: the error itself, and the key is free, for any payload', async () => {
      let fail = true;
      const run = target.gate().stagedOperation({
        ...base,
        async run(input: Order, { step, now }) {
          await now();
          await step('look', { external: false }, () => 1);
          if (fail) throw new RangeError('too early');
          return input.amount;
        },
      });
      expect((await rejection(run({ key, amount: 1 }))).name).toBe('RangeError');
      expect(await state()).toBe('released');
      fail = false;
      expect(await run({ key, amount: 2 })).toMatchObject({ value: 2, replayed: false });
    });

    it('after an effect: OUTCOME_UNKNOWN, a repeat goes on after the recorded steps', async () => {
      let fail = true;
      const run = target.gate().stagedOperation({
        ...base,
        async run(_: Order, { step, attempt }) {
          const paid = await step('charge', provider.charge);
          if (fail) throw new RangeError('after the charge');
          return { paid, attempt };
        },
      });
      const error = await rejection(run({ key }), 'OUTCOME_UNKNOWN');
      expect(error['cause']).toBeInstanceOf(RangeError);
      expect(await state()).toBe('waiting');
      await rejection(run({ key, amount: 2 }), 'IDEMPOTENCY_KEY_REUSED');
      fail = false;
      expect((await run({ key })).value).toEqual({ paid: 'charge-1', attempt: 2 });
      expect(provider.calls).toHaveLength(1);
    });

    it('a step whose provider honours the key is repeated with the same key', async () => {
      let fail = true;
      const run = target.gate().stagedOperation({
        ...base,
        run: (_: Order, { step }) =>
          step('charge', (providerKey) => {
            const paid = provider.charge(providerKey);
            if (fail) throw new Error('timeout');
            return paid;
          }),
      });
      await rejection(run({ key }), 'OUTCOME_UNKNOWN');
      fail = false;
      expect((await run({ key })).value).toBe('charge-1');
      expect(provider.calls).toHaveLength(2);
      expect(provider.effects.size).toBe(1);
    });

    it('a step that takes no key is never repeated: later calls get OUTCOME_UNKNOWN', async () => {
      let calls = 0;
      const run = target.gate().stagedOperation({
        ...base,
        run: (_: Order, { step }) =>
          step('mail', async () => {
            calls++;
            throw new Error('timeout');
          }),
      });
      await rejection(run({ key }), 'OUTCOME_UNKNOWN');
      expect(await state()).toBe('indeterminate');
      await rejection(run({ key }), 'OUTCOME_UNKNOWN');
      await rejection(run({ key }), 'OUTCOME_UNKNOWN');
      expect(calls).toBe(1);
    });

    it('an error that leaves no doubt frees the key', async () => {
      const run = target.gate().stagedOperation({
        ...base,
        run: (_: Order, { step }) =>
          step('mail', { inDoubt: () => false }, async () => {
            throw new Error('connection refused');
          }),
      });
      expect((await rejection(run({ key }))).message).toBe('connection refused');
      expect(await state()).toBe('released');
    });

    it('the resolver settles an unknown step, either way, and is asked again when it does not know', async () => {
      for (const happened of [true, false]) {
        let calls = 0;
        const answers: unknown[] = ['unknown', { happened, result: 'found' }];
        const asked: string[] = [];
        const own = { ...base, key: () => `${key}${happened}` };
        const run = target.gate().stagedOperation({
          ...own,
          resolve: ({ step, providerKey }) => {
            asked.push(`${step} ${providerKey}`);
            return answers.shift() as never;
          },
          run: (_: Order, { step }) =>
            step('mail', async () => {
              if (++calls === 1) throw new Error('timeout');
              return 'sent';
            }),
        });
        await rejection(run({ key }), 'OUTCOME_UNKNOWN');
        await until('it has been resolved', async () => {
          const outcome = await run({ key }).catch(() => undefined);
          return outcome?.value === (happened ? 'found' : 'sent');
        });
        expect(calls).toBe(happened ? 1 : 2);
        const providerKey = providerKeyOf({ ...id(), key: `${key}${happened}` }, 'mail');
        expect(asked).toEqual([`mail ${providerKey}`, `mail ${providerKey}`]);
      }
    });

    it('a caught error of a step still ends the attempt: the code could not be replayed', async () => {
      let later = false;
      const run = target.gate().stagedOperation({
        ...base,
        async run(_: Order, { step }) {
          await step('charge', (_key) => Promise.reject(new Error('timeout'))).catch(() => {});
          await step('ship', () => (later = true)).catch(() => {});
          return 'fine';
        },
      });
      await rejection(run({ key }), 'OUTCOME_UNKNOWN');
      expect(later).toBe(false);
    });

    it('a database step that throws leaves nothing and frees the key', async () => {
      const run = target.gate().stagedOperation({
        ...base,
        run: (_: Order, { step }) =>
          step('book', { tx: true }, async (tx) => {
            await target.effect(tx, key);
            throw new RangeError('no');
          }),
      });
      expect((await rejection(run({ key }))).name).toBe('RangeError');
      expect(await target.lines(key)).toEqual([]);
      expect(await state()).toBe('released');
    });

    it('parks after attemptsMax failures; an operator’s resume goes on', async () => {
      let fail = true;
      const run = target.gate().stagedOperation({
        ...base,
        attemptsMax: 3,
        async run(_: Order, { step }) {
          const paid = await step('charge', provider.charge);
          if (fail) throw new Error('always');
          return paid;
        },
      });
      await rejection(run({ key }), 'OUTCOME_UNKNOWN');
      await due();
      await rejection(run({ key }), 'OUTCOME_UNKNOWN');
      await due();
      await rejection(run({ key }), 'OPERATION_PARKED');
      await rejection(run({ key }), 'OPERATION_PARKED');
      expect(provider.calls).toHaveLength(1);
      fail = false;
      expect(await target.store.decide(id(), { verb: 'resume' })).toBe('done');
      expect((await run({ key })).value).toBe('charge-1');
    });
  });

  describe('the rules of steps', () => {
    const fails = async (
      run: (input: Order, context: Context) => Promise<unknown>,
      code: string,
    ) => {
      const call = target.gate().stagedOperation({ ...base, run });
      const error = await rejection(call({ key }));
      const causes = [error, error['cause']] as { code?: string }[];
      expect(causes.map((cause) => cause?.code)).toContain(code);
      return causes;
    };

    it('refuses a name that is used twice, in sequence and in parallel', async () => {
      await fails(async (_, { step }) => {
        await step('a', { external: false }, () => 1);
        await step('a', { external: false }, () => 1);
      }, 'STEP_INVALID');
    });

    it('refuses nested steps', async () => {
      await fails(
        (_, { step }) => step('outer', { external: false }, () => step('inner', provider.charge)),
        'STEP_INVALID',
      );
      expect(provider.calls).toEqual([]);
    });

    it('lets steps run in parallel', async () => {
      const run = target.gate().stagedOperation({
        ...base,
        run: (_: Order, { step }) =>
          Promise.all(['a', 'b', 'c'].map((name) => step(name, provider.charge))),
      });
      expect((await run({ key })).value).toHaveLength(3);
      expect(provider.effects.size).toBe(3);
    });

    it('refuses to end before its steps, and loses nothing of them', async () => {
      const held = door();
      const call = fails(async (_, { step }) => {
        void step('charge', async (providerKey) => {
          await held.opened;
          return provider.charge(providerKey);
        });
        return 'early';
      }, 'STEP_INVALID');
      held.open();
      await call;
      expect(await stepNames()).toEqual(['charge']);
    });

    it('refuses too many steps, too long results and what cannot be stored', async () => {
      const limits = { ...base, stepsMax: 2, stepCharsMax: 1_000 };
      const run = (body: (context: Context) => Promise<unknown>) => {
        key += '+';
        return target.gate().stagedOperation({ ...limits, run: (_: Order, c) => body(c) })({ key });
      };
      const many = run(async ({ step }) => {
        for (const name of 'abc') await step(name, { external: false }, () => 1);
      });
      await rejection(many, 'STEP_INVALID');
      const long = run(({ step }) => step('a', { external: false }, () => 'x'.repeat(2_000)));
      await rejection(long, 'RESULT_INVALID');
      const odd = run(({ step }) => step('a', { external: false }, () => () => 1));
      await rejection(odd, 'RESULT_INVALID');
    });

    it('a step under another name, kind or input after an effect: STEP_DIVERGED, no second effect', async () => {
      let version = 1;
      const run = target.gate().stagedOperation({
        ...base,
        attemptsMax: 10,
        async run(_: Order, { step }) {
          if (version === 3) await step('charge', { tx: true }, () => 1);
          else if (version === 4) await step('charge', { fingerprint: 2 }, provider.charge);
          else await step(version === 2 ? 'pay' : 'charge', { fingerprint: 1 }, provider.charge);
          if (version === 1) throw new Error('stop here');
          return 'done';
        },
      });
      await rejection(run({ key }), 'OUTCOME_UNKNOWN');
      for (version of [2, 3, 4]) {
        const error = await rejection(run({ key }), 'OUTCOME_UNKNOWN');
        expect(error['cause']).toMatchObject({ code: 'STEP_DIVERGED' });
      }
      expect(provider.calls).toHaveLength(1);
      version = 5;
      expect((await run({ key })).value).toBe('done');
    });

    it('refuses an input that cannot be stored, before any record', async () => {
      const run = target.gate().stagedOperation({
        name: base.name,
        key: () => key,
        fingerprint: () => 1,
        run: () => 1,
      });
      await rejection(run({ f: () => 1 }), 'OPTION_INVALID');
      expect(await state()).toBeUndefined();
    });
  });

  describe('crashes', () => {
    it('at every write, before and after it: every effect once, the operation is finished', async () => {
      const probe = new Mortal(-1, 'before');
      await target.gate(probe.wrap).stagedOperation({ ...base, run: place })({ key });
      expect(probe.log).toEqual(
        'open startStep finishStep finishStep transactStep startStep finishStep end'.split(' '),
      );
      const deaths = probe.log.flatMap((_, at) => [
        { at, when: 'before' as const },
        { at, when: 'after' as const },
      ]);
      await Promise.all(
        deaths.map(async ({ at, when }) => {
          const own = `${key}${at}${when}.`;
          const seller = new Provider();
          const run = async (_: Order, { step, uuid }: Context) => {
            const paid = await step('charge', seller.charge);
            const mark = await uuid();
            await step('book', { tx: true }, (tx) => target.effect(tx, own));
            return { paid, mark, shipped: await step('ship', seller.charge) };
          };
          const mortal = new Mortal(at, when);
          const first = target.gate(mortal.wrap).stagedOperation({ ...base, run });
          void first({ key: own });
          await mortal.died;
          const heir = target.gate().stagedOperation({ ...base, waitMs: 30_000, run });
          const { value } = await heir({ key: own });
          expect(value).toMatchObject({ paid: 'charge-1', shipped: 'charge-2' });
          expect(seller.effects.size).toBe(2);
          expect(await target.lines(own)).toEqual([own]);
          expect(await heir({ key: own })).toMatchObject({ value, replayed: true });
        }),
      );
    });

    it('a lost answer to any write is settled by asking again: one run, every effect once', async () => {
      const lost = new Set<string>();
      const gate = target.gate(
        (store) =>
          new Proxy(store, {
            get: (same, name: keyof typeof store) => {
              const value = same[name];
              if (typeof value !== 'function') return value;
              return async (...args: unknown[]) => {
                const answer = await (value as (...a: unknown[]) => Promise<unknown>).apply(
                  same,
                  args,
                );
                const which = `${name} ${JSON.stringify((args[1] as { name?: string })?.name)}`;
                if (lost.has(which) || name === 'read') return answer;
                lost.add(which);
                throw new TurngateError('STORE_UNAVAILABLE', 'the answer was lost');
              };
            },
          }),
      );
      let runs = 0;
      const run = gate.stagedOperation({
        ...base,
        leaseMs: 10_000,
        run(order: Order, context) {
          runs++;
          return place(order, context);
        },
      });
      expect(await run({ key })).toMatchObject({ replayed: false, value: { shipped: 'charge-2' } });
      expect(lost.size).toBeGreaterThan(6);
      expect(runs).toBe(1);
      expect(provider.calls).toHaveLength(2);
      expect(await target.lines(key)).toEqual([`${key}book`]);
    });

    it('inside a step, before and after the effect: once where the key is honoured', async () => {
      for (const when of ['before', 'after']) {
        key += when;
        const mortal = new Mortal(-1, 'before');
        const dying = target.gate(mortal.wrap).stagedOperation({
          ...base,
          run: (_: Order, { step }) =>
            step('charge', (providerKey) => {
              if (when === 'after') provider.charge(providerKey);
              return mortal.die();
            }),
        });
        void dying({ key });
        await mortal.died;
        const heir = target.gate().stagedOperation({
          ...base,
          run: (_: Order, { step }) => step('charge', provider.charge),
        });
        await heir({ key });
      }
      expect(provider.effects.size).toBe(2);
      expect(provider.calls).toHaveLength(3);
    });

    it('inside a step that takes no key: never repeated, OUTCOME_UNKNOWN until an operator speaks', async () => {
      const mortal = new Mortal(-1, 'before');
      let sent = 0;
      const dying = target.gate(mortal.wrap).stagedOperation({
        ...base,
        run: (_: Order, { step }) =>
          step('mail', () => {
            sent++;
            return mortal.die();
          }),
      });
      void dying({ key });
      await mortal.died;
      const heir = target.gate().stagedOperation({
        ...base,
        run: (_: Order, { step }) =>
          step('mail', () => {
            sent++;
            return 'sent';
          }),
      });
      await rejection(heir({ key }), 'OUTCOME_UNKNOWN');
      await rejection(heir({ key }), 'OUTCOME_UNKNOWN');
      expect(sent).toBe(1);
      const seen = await target.store.inspect(id());
      expect(seen?.steps).toMatchObject([
        { name: 'mail', state: 'started', onUnknown: 'indeterminate' },
      ]);
      const verdict = { verb: 'happened', step: 'mail', result: '1"by hand"' } as const;
      expect(await target.store.decide(id(), { ...verdict, step: 'other' })).toBe('refused');
      expect(await target.store.decide(id(), verdict)).toBe('done');
      expect((await heir({ key })).value).toBe('by hand');
      expect(sent).toBe(1);
      expect(await target.store.decide(id(), verdict)).toBe('refused');
    });

    it('a zombie’s writes touch nothing: step, database step and result', async () => {
      // With one session for all, a database step that hangs keeps everybody waiting.
      const kinds = ['external', 'end', ...(target.oneSession ? [] : ['tx'])];
      for (const kind of kinds) {
        key += kind;
        const held = door();
        const begun = door();
        const stuck = async () => {
          begun.open();
          await held.opened;
        };
        // Without renewal, as a process whose event loop stands still.
        const frozen = target.gate(
          (store) =>
            new Proxy(store, {
              get: (same, name: keyof typeof store) => {
                if (name === 'renew') return () => new Promise(() => {});
                const value = same[name];
                return typeof value === 'function' ? value.bind(same as never) : value;
              },
            }),
        );
        const zombie = frozen.stagedOperation({
          ...base,
          async run(_: Order, { step }) {
            if (kind === 'end') await stuck();
            else if (kind === 'external') {
              await step('work', async (_key) => {
                await stuck();
                return 'zombie';
              });
            } else {
              await step('work', { tx: true }, async (tx) => {
                await stuck();
                await target.effect(tx, `${key}zombie`);
                return 'zombie';
              });
            }
            return 'zombie';
          },
        });
        const call = zombie({ key });
        await begun.opened;
        await due();
        const heir = target.gate().stagedOperation({
          ...base,
          async run(_: Order, { step, attempt }) {
            if (kind === 'external') await step('work', (_key) => 'heir');
            if (kind === 'tx') await step('work', { tx: true }, (tx) => target.effect(tx, key));
            return attempt;
          },
        });
        expect((await heir({ key })).value).toBe(2);
        held.open();
        await rejection(call, 'LEASE_LOST');
        const seen = await target.store.inspect(id());
        expect(seen?.record).toMatchObject({ state: 'done', attempt: 2, result: '12' });
        expect(seen?.steps.map(({ result }) => result)).not.toContain('1"zombie"');
        expect(await target.lines(`${key}zombie`)).toEqual([]);
      }
    });

    it('a handler slower than its lease keeps it by renewal', async () => {
      const begun = door();
      const run = target.gate().stagedOperation({
        ...base,
        leaseMs: 1_500, // A loaded machine stalls for longer than a third of 500.
        async run(_: Order, { step, attempt }) {
          begun.open();
          await step('slow', (_key) => new Promise((resolve) => setTimeout(resolve, 4_000)));
          return attempt;
        },
      });
      const other = target.gate().stagedOperation({ ...base, run: () => 'stolen' });
      const call = run({ key });
      await begun.opened;
      const [first, second] = await Promise.all([call, other({ key })]);
      expect([first.value, second.value]).toEqual([1, 1]);
    });
  });

  describe('recovery', () => {
    it('finishes what a dead process left, once, with two sweepers at it', async () => {
      const mortal = new Mortal(2, 'after');
      void target.gate(mortal.wrap).stagedOperation({ ...base, run: place })({ key });
      await mortal.died;
      const heirs = [target.gate(), target.gate()];
      for (const gate of heirs) gate.stagedOperation({ ...base, run: place });
      const sweepers = heirs.map((gate) => gate.recover({ everyMs: 50 }));
      await until('it is done', async () => (await state()) === 'done');
      await Promise.all(sweepers.map((sweeper) => sweeper.stop()));
      expect(provider.effects.size).toBe(2);
      expect(await target.lines(key)).toEqual([`${key}book`]);
    });

    it('runs what was enqueued in a committed transaction, and nothing of one rolled back', async () => {
      const gate = target.gate();
      const run = gate.stagedOperation({ ...base, run: place });
      await rejection(
        target.transaction(async (tx) => {
          await run.enqueue(tx, { key });
          throw new Error('rolled back');
        }),
      );
      expect(await state()).toBeUndefined();
      const enqueue = () => target.transaction((tx) => run.enqueue(tx, { key }));
      expect(await enqueue()).toBe('accepted');
      expect(await enqueue()).toBe('known');
      const sweeper = gate.recover({ everyMs: 3_600_000 });
      expect(await sweeper.sweep()).toBe(1);
      expect(await state()).toBe('done');
      expect(await run({ key })).toMatchObject({ replayed: true });
      expect(provider.effects.size).toBe(2);
    });

    it('a caller who is impatient parks nothing, and does not put off the next attempt', async () => {
      let fail = true;
      const run = target.gate().stagedOperation({
        ...base,
        attemptsMax: 3,
        async run(_: Order, { step, attempt }) {
          await step('charge', provider.charge);
          if (fail) throw new Error('the other side is away');
          return attempt;
        },
      });
      await rejection(run({ key }), 'OUTCOME_UNKNOWN');
      const first = await target.store.read(id());
      const endMs = Date.now() + (first?.dueInMs ?? 0);
      let early = 0;
      for (; Date.now() < endMs - 50 && early < 20; early++) {
        await rejection(run({ key }), 'OUTCOME_UNKNOWN');
      }
      const later = await target.store.read(id());
      expect(later?.attempt).toBe(1 + early);
      expect(later?.failures).toBe(1);
      expect(Date.now() + (later?.dueInMs ?? 0)).toBeLessThanOrEqual(endMs + 1_000);
      fail = false;
      expect((await run({ key })).value).toBe(2 + early);
    });

    it('retries what was promised with growing pauses, then parks it', async () => {
      const gate = target.gate();
      let runs = 0;
      const run = gate.stagedOperation({
        ...base,
        attemptsMax: 2,
        run() {
          runs++;
          throw new Error('always');
        },
      });
      await target.transaction((tx) => run.enqueue(tx, { key }));
      const sweeper = gate.recover({ everyMs: 50 });
      await until('it is parked', async () => (await state()) === 'parked', 20_000);
      await sweeper.stop();
      expect(runs).toBe(2);
      expect((await target.store.read(id()))?.error).toContain('always');
    });

    it('parks what kills each process that takes it up', async () => {
      for (let i = 0; i < 2; i++) {
        const mortal = new Mortal(i === 0 ? 1 : 2, 'before');
        const dying = target
          .gate(mortal.wrap)
          .stagedOperation({ ...base, attemptsMax: 2, run: place });
        void dying({ key });
        await mortal.died;
        await due();
      }
      const gate = target.gate();
      const run = gate.stagedOperation({ ...base, attemptsMax: 2, run: place });
      const sweeper = gate.recover({ everyMs: 3_600_000 });
      await sweeper.sweep();
      await sweeper.stop();
      expect(await state()).toBe('parked');
      await rejection(run({ key }), 'OPERATION_PARKED');
    });

    it('does not park what gets on: a crash after a step that was done is the first again', async () => {
      const placing = { ...base, attemptsMax: 2, run: place };
      // The first begins nothing; the second gets one step done, and dies before the next is recorded.
      for (const writes of [1, 4]) {
        const mortal = new Mortal(writes, 'before');
        void target.gate(mortal.wrap).stagedOperation(placing)({ key });
        await mortal.died;
        await due();
      }
      const run = target.gate().stagedOperation(placing);
      expect((await run({ key })).replayed).toBe(false);
      expect(await state()).toBe('done');
    });

    it('a durable sleep gives the operation back and wakes in another process', async () => {
      const run = async (_: Order, { step, sleep, attempt }: Context) => {
        await step('charge', provider.charge);
        await sleep('rest', 1_300);
        return attempt;
      };
      const gate = target.gate();
      const first = gate.stagedOperation({ ...base, waitMs: 100, run });
      const sweeper = gate.recover({ everyMs: 3_600_000 });
      await rejection(first({ key }), 'REQUEST_IN_PROGRESS');
      expect(await state()).toBe('sleeping');
      await sweeper.stop();
      const other = target.gate();
      other.stagedOperation({ ...base, run });
      const waker = other.recover({ everyMs: 50 });
      await until('it is done', async () => (await state()) === 'done');
      await waker.stop();
      expect(await first({ key })).toMatchObject({ value: 2, replayed: true });
      expect(provider.calls).toHaveLength(1);
    });
  });

  describe('operators', () => {
    it('list by state, scope and operation, in pages', async () => {
      const name = `page.${counter}`;
      const run = target.gate().stagedOperation({
        ...base,
        name,
        scope: ({ key: k }: Order) => k.slice(-1),
        run: () => 1,
      });
      for (const suffix of ['1a', '2a', '3b', '4b', '5b']) await run({ key: `${key}${suffix}` });
      const filter = { operation: name, state: 'done' as const };
      const first = await target.store.list({ ...filter, limit: 3 });
      const rest = await target.store.list({ ...filter, limit: 3, after: first.cursor as string });
      const keys = [...first.records, ...rest.records].map((record) => record.id.key);
      expect(keys.sort()).toEqual(
        ['1a', '2a', '3b', '4b', '5b'].map((suffix) => `${key}${suffix}`),
      );
      expect(rest.cursor).toBeUndefined();
      const scoped = await target.store.list({ ...filter, scope: 'a', limit: 10 });
      expect(scoped.records).toHaveLength(2);
    });

    it('release forgets the steps; park stops a running one, whose writes then touch nothing', async () => {
      const held = door();
      const begun = door();
      let wait = true;
      const run = target.gate().stagedOperation({
        ...base,
        async run(_: Order, { step }) {
          const paid = await step('charge', provider.charge);
          begun.open();
          if (wait) await held.opened;
          return paid;
        },
      });
      const call = run({ key });
      await begun.opened;
      expect(await target.store.decide(id(), { verb: 'park' })).toBe('done');
      held.open();
      await rejection(call, 'LEASE_LOST');
      await rejection(run({ key }), 'OPERATION_PARKED');
      expect(await target.store.decide(id(), { verb: 'release' })).toBe('done');
      expect(await stepNames()).toEqual([]);
      wait = false;
      expect((await run({ key, amount: 7 })).replayed).toBe(false);
      expect(await target.store.decide({ ...id(), key: 'none' }, { verb: 'park' })).toBe('missing');
    });

    it('purges finished operations past their retention with their steps, and no others', async () => {
      const gate = target.gate();
      const run = gate.stagedOperation({ ...base, retentionMs: 1_000, run: place });
      await run({ key });
      const open = { ...id(), key: `${key}open` };
      const claim = { id: open, fingerprint: '1.x', input: '1', owner: 'o', leaseMs: 500 };
      await target.store.open(claim);
      await until(
        'the retention is over',
        async () => (await target.store.read(id()))?.expired === true,
      );
      await target.store.purge({ batchRows: 100, batches: 100 });
      expect(await state()).toBeUndefined();
      expect(await target.store.inspect(id())).toBeUndefined();
      expect(await target.store.read(open)).toMatchObject({ state: 'running' });
      expect((await run({ key })).replayed).toBe(false);
    });
  });
});
