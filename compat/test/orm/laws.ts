// biome-ignore-all lint/suspicious/noExplicitAny: each ORM has generics of its own, which no shared law can name.
/** What must hold for an ORM's transactions, on every database the ORM is tried on. */
import { createGate, isUniqueViolation } from 'turngate';
import type { SqlDialect } from 'turngate/contract';
import { assertAlive, ormRecords } from 'turngate/orm';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import {
  constraint,
  type Ground,
  mariadbGround,
  type Orm,
  postgresGround,
  sqliteGround,
} from './world.ts';

const grounds = { postgres: postgresGround, mysql: mariadbGround, sqlite: sqliteGround };
const names = { postgres: 'PostgreSQL', mysql: 'MariaDB', sqlite: 'SQLite' };

interface Input {
  readonly key: string;
  readonly amount: number;
  readonly act?: 'swallow' | 'throw' | 'duplicate';
}

/** How an ORM is opened on each database it is tried on. */
export type Openers<Tx> = { [D in SqlDialect]?: (ground: Ground) => Promise<Orm<Tx>> };

/** Registers the laws for one ORM. */
export function ormSuite<Tx>(name: string, openers: Openers<Tx>): void {
  for (const dialect of Object.keys(openers) as SqlDialect[]) {
    const open = openers[dialect];
    const missing =
      (dialect === 'postgres' && inject('postgresUrl') === '') ||
      (dialect === 'mysql' && inject('mariadbUrl') === '');
    if (missing && process.env['CI']) throw new Error(`no ${names[dialect]} for ${name}`);
    describe.skipIf(missing)(`${name} on ${names[dialect]}`, () => laws(dialect, open as never));
  }
}

function laws<Tx>(dialect: SqlDialect, open: (ground: Ground) => Promise<Orm<Tx>>): void {
  let ground: Ground;
  let orm: Orm<Tx>;
  let pay: any;
  let runs = 0;
  let keys = 0;
  const fresh = (): string => `k${++keys}.`;

  beforeAll(async () => {
    ground = await grounds[dialect]();
    orm = await open(ground);
    const records = ormRecords<Tx>(ground.records, {
      session: (tx) => orm.session(tx),
      transaction: (body) => orm.transaction(body),
    });
    pay = createGate({ records }).operation({
      name: 'orm.pay',
      scope: () => 'shop',
      key: ({ key }: Input) => key,
      fingerprint: ({ key, amount }: Input) => ({ key, amount }),
      async run(input: Input, { tx }: { tx: Tx }) {
        const run = ++runs;
        await orm.insert(tx, `${input.key}effect`);
        if (input.act === 'throw') throw new Error('handler failed');
        if (input.act === 'duplicate') await orm.insert(tx, `${input.key}effect`);
        if (input.act === 'swallow') {
          await orm.insert(tx, `${input.key}effect`).catch(() => undefined);
          await orm.insert(tx, `${input.key}later`).catch(() => undefined);
        }
        return { run };
      },
    } as never);
  });
  afterAll(async () => {
    await orm?.close();
    await ground?.drop();
  });

  it('within: first runs, a repeat in another transaction gets its result; a mismatch is refused', async () => {
    const input = { key: fresh(), amount: 1 };
    const first: any = await orm.transaction((tx) => pay.within(tx, input));
    const again = await orm.transaction((tx) => pay.within(tx, input));
    expect(first.replayed).toBe(false);
    expect(again).toMatchObject({ replayed: true, value: first.value });
    const other = orm.transaction((tx) => pay.within(tx, { ...input, amount: 2 }));
    await expect(other).rejects.toMatchObject({ code: 'IDEMPOTENCY_KEY_REUSED' });
    expect(await ground.lines(input.key)).toEqual([`${input.key}effect`]);
  });

  it('called: the operation opens the ORM’s transaction itself', async () => {
    const input = { key: fresh(), amount: 1 };
    const first = await pay(input);
    const again = await pay(input);
    expect([first.replayed, again.replayed]).toEqual([false, true]);
    expect(await ground.lines(input.key)).toEqual([`${input.key}effect`]);
    const failing = { key: fresh(), amount: 1, act: 'throw' };
    await expect(pay(failing)).rejects.toThrow('handler failed');
    expect(await ground.lines(failing.key)).toEqual([]);
  });

  it('the caller’s rollback takes effect and record with it and frees the key', async () => {
    const input = { key: fresh(), amount: 1 };
    const undone = orm.transaction(async (tx) => {
      await pay.within(tx, input);
      throw new Error('undo');
    });
    await expect(undone).rejects.toThrow('undo');
    expect(await ground.lines(input.key)).toEqual([]);
    expect(await orm.transaction((tx) => pay.within(tx, input))).toMatchObject({ replayed: false });
    expect(await ground.lines(input.key)).toEqual([`${input.key}effect`]);
  });

  it('a handler that throws is undone alone when the caller swallows the error and commits', async () => {
    const input = { key: fresh(), amount: 1, act: 'throw' };
    await orm.transaction(async (tx) => {
      await orm.insert(tx, `${input.key}before`);
      await expect(pay.within(tx, input)).rejects.toThrow('handler failed');
      await orm.insert(tx, `${input.key}after`);
    });
    expect(await ground.lines(input.key)).toEqual([`${input.key}after`, `${input.key}before`]);
  });

  it('twenty first calls at once: one effect, one run that counts, twenty equal answers', async () => {
    const input = { key: fresh(), amount: 1 };
    const one = () => orm.transaction((tx) => pay.within(tx, input));
    const outcomes = (await Promise.all(Array.from({ length: 20 }, one))) as any[];
    expect(outcomes.filter(({ replayed }) => !replayed)).toHaveLength(1);
    expect(new Set(outcomes.map(({ value }) => value.run)).size).toBe(1);
    expect(await ground.lines(input.key)).toEqual([`${input.key}effect`]);
  });

  it('a failing statement whose error is swallowed: told, or the rest is really there (L67)', async () => {
    for (const call of [
      (input: Input) => orm.transaction((tx) => pay.within(tx, input)),
      (input: Input) => pay(input),
    ]) {
      const input = { key: fresh(), amount: 1, act: 'swallow' as const };
      if (dialect === 'postgres') {
        await expect(call(input)).rejects.toMatchObject({ code: 'TRANSACTION_ROLLED_BACK' });
        expect(await ground.lines(input.key)).toEqual([]);
        expect(await pay({ ...input, act: undefined })).toMatchObject({ replayed: false });
      } else {
        // Here a failed statement undoes itself only: the transaction goes on and is committed.
        expect(await call(input)).toMatchObject({ replayed: false });
        expect(await ground.lines(input.key)).toEqual([`${input.key}effect`, `${input.key}later`]);
      }
    }
  });

  it('a failing statement swallowed after within: assertAlive tells before COMMIT becomes ROLLBACK', async () => {
    const input = { key: fresh(), amount: 1 };
    const call = orm.transaction(async (tx) => {
      await pay.within(tx, input);
      await orm.insert(tx, `${input.key}effect`).catch(() => undefined);
      await assertAlive(orm.session(tx));
    });
    if (dialect === 'postgres') {
      await expect(call).rejects.toMatchObject({ code: 'TRANSACTION_ROLLED_BACK' });
      expect(await ground.lines(input.key)).toEqual([]);
    } else {
      await call;
      expect(await ground.lines(input.key)).toEqual([`${input.key}effect`]);
    }
    expect(await pay(input)).toMatchObject({ replayed: dialect !== 'postgres' });
  });

  it('a duplicate key is recognised through the ORM, by its constraint’s name', async () => {
    const input = { key: fresh(), amount: 1, act: 'duplicate' };
    const error: unknown = await orm
      .transaction((tx) => pay.within(tx, input))
      .then(
        () => undefined,
        (thrown) => thrown,
      );
    expect(isUniqueViolation(error), String(error)).toBe(true);
    const named = {
      postgres: 'orm_effect_pkey',
      mysql: 'PRIMARY',
      sqlite: 'orm_effect.line',
    }[dialect];
    expect(isUniqueViolation(error, named), named).toBe(true);
    expect(isUniqueViolation(error, constraint)).toBe(false);
    expect(await ground.lines(input.key)).toEqual([]);
  });

  it('a session binds values as they are, whatever their order and whatever else is in the text', async () => {
    const key = fresh();
    await orm.transaction(async (tx) => {
      const session = orm.session(tx);
      const insert = 'INSERT INTO orm_effect (note, line) VALUES ($2, $1)';
      const awkward = `${key}'?$1\\:x "ü🙂`;
      expect(await session.query(insert, [`${key}a`, awkward])).toMatchObject({ affectedRows: 1 });
      expect(await session.query(insert, [`${key}b`, null])).toMatchObject({ affectedRows: 1 });
      const { rows } = await session.query(
        "SELECT note, '$1 ? :x' AS odd FROM orm_effect WHERE line = $1 OR (line = $1 AND note = $2)",
        [`${key}a`, awkward],
      );
      expect(rows.map((row) => ({ ...row }))).toEqual([{ note: awkward, odd: '$1 ? :x' }]);
      const renamed = await session.query(
        'UPDATE orm_effect SET note = $1 WHERE line IN ($2, $3)',
        [null, `${key}a`, `${key}b`],
      );
      if (dialect !== 'mysql') expect(renamed.affectedRows).toBe(2);
      const limited = await session.query(
        'SELECT line FROM orm_effect WHERE line IN ($1, $2) ORDER BY line LIMIT $3',
        [`${key}a`, `${key}b`, 1],
      );
      expect(limited.rows).toHaveLength(1);
      const gone = await session.query('DELETE FROM orm_effect WHERE line = $1', [`${key}none`]);
      expect(gone.affectedRows).toBe(0);
    });
    expect(await ground.lines(key)).toHaveLength(2);
  });

  it('what is not in a transaction is refused before anything is written', async () => {
    if (orm.outside === undefined) return;
    const input = { key: fresh(), amount: 1 };
    const call = async () => pay.within(orm.outside, input);
    await expect(call()).rejects.toMatchObject({ code: 'TRANSACTION_REQUIRED' });
    expect(await ground.lines(input.key)).toEqual([]);
  });

  it('a transaction that has ended is refused, and nothing is written', async () => {
    let ended: Tx | undefined;
    await orm.transaction(async (tx) => {
      ended = tx;
    });
    const input = { key: fresh(), amount: 1 };
    const late = async () => pay.within(ended as Tx, input);
    await expect(late()).rejects.toThrow();
    expect(await ground.lines(input.key)).toEqual([]);
  });
}
