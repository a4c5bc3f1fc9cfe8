/** Real processes, killed and stopped, against a provider in another process. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGate, type Gate, type StagedOperation } from '../../src/index.ts';
import { type PgClientLike, postgres, postgresStaged } from '../../src/stores/postgres/index.ts';
import { type Child, startChild } from '../support/child.ts';
import { pause, until } from '../support/clock.ts';
import {
  createDatabase,
  createPool,
  insertEffect,
  serverUrl,
  type TestDatabase,
} from '../support/postgres.ts';

interface Order {
  readonly key: string;
}

/** Honours its keys: an effect per key, however often it is asked. */
class Provider {
  readonly effects = new Map<string, string>();
  calls = 0;
  /** Held answers, to stop a child in the middle of a step. */
  held: Promise<void> = Promise.resolve();
  url = '';
  private readonly server: Server;

  constructor() {
    this.server = createServer((request, response) => {
      void (async () => {
        this.calls++;
        const key = request.headers['idempotency-key'] as string;
        const known = this.effects.get(key) ?? `${request.url}-${this.effects.size + 1}`;
        this.effects.set(key, known);
        await this.held;
        response.end(known);
      })();
    });
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    this.url = `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.server.closeAllConnections();
    this.server.close();
  }
}

describe.skipIf(serverUrl === '')(
  'staged operations in processes that die',
  { timeout: 90_000 },
  () => {
    let database: TestDatabase;
    let pool: pg.Pool;
    let gate: Gate<PgClientLike>;
    let place: StagedOperation<PgClientLike, Order, unknown>;
    const provider = new Provider();
    const staged = () => postgresStaged(pool);

    beforeAll(async () => {
      database = await createDatabase();
      pool = createPool(database.url, { max: 10 });
      await provider.start();
      gate = createGate({ records: postgres(pool), staged: staged(), memoryCharsMax: 0 });
      const ask = async (name: string, key: string): Promise<string> =>
        (
          await fetch(`${provider.url}/${name}`, {
            method: 'POST',
            headers: { 'Idempotency-Key': key },
          })
        ).text();
      place = gate.stagedOperation({
        name: 'child.place',
        key: (input: Order) => input.key,
        leaseMs: 1_000,
        waitMs: 30_000,
        async run({ key }: Order, { step, uuid }) {
          const paid = await step('charge', (providerKey) => ask('charge', providerKey));
          await uuid();
          await step(
            'book',
            { tx: true },
            async (tx) => void (await tx.query(insertEffect, [key])),
          );
          const shipped = await step('ship', (providerKey) => ask('ship', providerKey));
          return { paid, shipped };
        },
      });
    });
    afterAll(async () => {
      await gate?.close();
      provider.stop();
      await pool?.end();
      await database?.drop();
    });

    const child = (key: string, point: string): Child =>
      startChild('../staged/staged-child.mjs', [database.url, provider.url, key, point]);
    const record = (key: string) => staged().read({ operation: 'child.place', scope: '-', key });

    /** Every operation that was begun is finished, each effect once. */
    async function audit(keys: readonly string[]): Promise<void> {
      const before = provider.effects.size;
      for (const key of keys) expect((await place({ key })).value).toBeDefined();
      expect(provider.effects.size).toBeGreaterThanOrEqual(before);
      for (const key of keys) expect(await database.lines(key)).toEqual([key]);
    }

    it('kill -9 at every write and around every call: each effect once, nothing lost', async () => {
      const writes = Array.from({ length: 8 }, (_, i) => [`write:${i}:before`, `write:${i}:after`]);
      const steps = ['charge', 'ship'].map((name) => [`step:${name}:before`, `step:${name}:after`]);
      const points = [...writes, ...steps].flat();
      const queue = [...points];
      const worker = async (): Promise<void> => {
        for (let point = queue.shift(); point !== undefined; point = queue.shift()) {
          expect([point, await child(`kill.${point}.`, point).ended]).toEqual([point, 'SIGKILL']);
        }
      };
      await Promise.all([worker(), worker(), worker()]);
      const recovery = gate.recover({ everyMs: 100 });
      await until('recovery has finished what was begun', async () => {
        const { records } = await staged().list({ operation: 'child.place', limit: 100 });
        return (
          records.length === points.length - 1 && records.every(({ state }) => state === 'done')
        );
      });
      await recovery.stop();
      await audit(points.map((point) => `kill.${point}.`));
      expect(provider.effects.size).toBe(2 * points.length);
    });

    it('kill -9 at random moments: each effect once, nothing lost', async () => {
      const seed = Date.now() % 100_000;
      process.stderr.write(`seed ${seed}\n`);
      let random = seed;
      const next = (): number => {
        random = (random * 1_103_515_245 + 12_345) % 2 ** 31;
        return random / 2 ** 31;
      };
      const keys = Array.from({ length: 12 }, (_, i) => `random.${i}.`);
      const before = provider.effects.size;
      for (let i = 0; i < keys.length; i += 3) {
        await Promise.all(
          keys.slice(i, i + 3).map(async (key) => {
            const victim = child(key, 'none');
            await victim.said('running');
            await pause(next() * 30);
            victim.process.kill('SIGKILL');
            await victim.ended;
          }),
        );
      }
      const recovery = gate.recover({ everyMs: 100 });
      await audit(keys);
      await recovery.stop();
      expect(provider.effects.size).toBe(before + 2 * keys.length);
    });

    it('SIGSTOP longer than the lease: another finishes, the zombie’s writes touch nothing', async () => {
      const key = 'stopped.';
      let release!: () => void;
      provider.held = new Promise((resolve) => {
        release = resolve;
      });
      const callsBefore = provider.calls;
      const zombie = child(key, 'none');
      await until('the provider was asked', () => provider.calls > callsBefore);
      zombie.process.kill('SIGSTOP');
      provider.held = Promise.resolve();
      const { value } = await place({ key });
      const before = await staged().inspect({ operation: 'child.place', scope: '-', key });
      release();
      zombie.process.kill('SIGCONT');
      await zombie.said('LEASE_LOST');
      await zombie.ended;
      expect(await staged().inspect({ operation: 'child.place', scope: '-', key })).toMatchObject({
        record: { attempt: 2, owner: before?.record.owner, result: before?.record.result },
        steps: before?.steps.map(({ name, attempt, result }) => ({ name, attempt, result })) ?? [],
      });
      expect((await place({ key })).value).toEqual(value);
      expect(await database.lines(key)).toEqual([key]);
    });

    it('1,000 calls with one key over two gates: one run', async () => {
      const key = 'thousand.';
      const other = createGate({ records: postgres(pool), staged: staged(), memoryCharsMax: 0 });
      let runs = 0;
      const declare = (own: Gate<PgClientLike>) =>
        own.stagedOperation({
          name: 'race',
          key: (input: Order) => input.key,
          run: async (_: Order, { step }) => step('count', (_key) => ++runs),
        });
      const calls = [declare(gate), declare(other)];
      const outcomes = await Promise.all(
        Array.from({ length: 1_000 }, (_, i) => calls[i % 2]!({ key })),
      );
      expect(runs).toBe(1);
      expect(outcomes.filter(({ replayed }) => !replayed)).toHaveLength(1);
      expect(await record('none')).toBeUndefined();
      await other.close();
    });

    it('counts statements: a step costs at most 5 at first, a repeat 1', async () => {
      const counted = createPool(database.url, { max: 2 });
      const texts: string[] = [];
      counted.on('connect', (client) => {
        const query = client.query.bind(client) as (...args: unknown[]) => unknown;
        Object.assign(client, {
          query: (...args: unknown[]) => {
            const [config] = args as [string | { text?: string; steps?: unknown[] }];
            texts.push(typeof config === 'string' ? config : (config.text ?? 'batch'));
            return query(...args);
          },
        });
      });
      const own = createGate({
        records: postgres(counted),
        staged: postgresStaged(counted),
        memoryCharsMax: 0,
      });
      const cost = async (call: () => Promise<unknown>): Promise<number> => {
        const before = texts.length;
        await call();
        return texts.length - before;
      };
      const declare = (name: string, tx: boolean, steps: number) =>
        own.stagedOperation({
          name,
          key: (input: Order) => input.key,
          async run({ key }: Order, { step }) {
            for (let i = 0; i < steps; i++) {
              if (tx)
                await step(
                  `s${i}`,
                  { tx: true },
                  async (t) => void (await t.query(insertEffect, [key])),
                );
              else await step(`s${i}`, (_key) => i);
            }
          },
        });
      const figures: Record<string, number> = {};
      for (const [kind, tx] of [
        ['external', false],
        ['tx', true],
      ] as const) {
        const [none, one] = [declare(`${kind}.none`, tx, 0), declare(`${kind}.one`, tx, 1)];
        const base = await cost(() => none({ key: 'a' }));
        figures[`${kind} operation without steps`] = base;
        figures[`${kind} step`] = (await cost(() => one({ key: 'a' }))) - base;
        figures[`${kind} repeat`] = await cost(() => one({ key: 'a' }));
      }
      await own.close();
      await counted.end();
      process.stderr.write(`statements: ${JSON.stringify(figures)}\n`);
      expect(figures).toEqual({
        'external operation without steps': 2,
        'external step': 2,
        'external repeat': 1,
        'tx operation without steps': 2,
        'tx step': 4, // BEGIN, the effect, the record, COMMIT: one commit.
        'tx repeat': 1,
      });
    });
  },
);
