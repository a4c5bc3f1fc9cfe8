/** What operators may see and do, and that each act leaves its line. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  adminHandler,
  cleanUp,
  createAdmin,
  memoryAudit,
  sqlAudit,
} from '../../src/admin/index.ts';
import { encodeResult } from '../../src/core/codec.ts';
import type { RecordId } from '../../src/core/record-id.ts';
import { fingerprintOf, isTurngateError } from '../../src/index.ts';
import { memory, memoryLocks, memoryStaged } from '../../src/stores/memory/index.ts';
import { describeWith } from '../support/servers.ts';
import { type Opened, openMariadb, openPostgres } from './targets.ts';

const why = 'ticket 7';

/** As a process leaves it that died inside a step which takes no key. */
async function leaveUnknown(target: Opened, id: RecordId, name: string): Promise<void> {
  const { staged } = target.stores;
  if (staged === undefined) throw new Error('no staged store');
  const fingerprint = fingerprintOf(id.key);
  const claim = { id, fingerprint, input: encodeResult(id.key), owner: 'dead', leaseMs: 60_000 };
  expect((await staged.open(claim)).kind).toBe('claimed');
  const hold = { id, owner: 'dead', attempt: 1 };
  const kinds = { kind: 'external', onUnknown: 'indeterminate', fingerprint: undefined } as const;
  expect(await staged.startStep(hold, { name, seq: 0, ...kinds })).toBe('ours');
  const rest = { error: undefined, failures: 1, retentionMs: 60_000 };
  const leaving = { state: 'indeterminate', dueInMs: 60_000, ...rest } as const;
  expect(await staged.leave(hold, leaving)).toBe('ours');
}

function laws(open: () => Promise<Opened>): void {
  let target: Opened;
  beforeAll(async () => {
    target = await open();
  });
  afterAll(() => target?.close());

  const linesOf = async (key: string) => (await target.admin.audit.list({ key })).lines;

  it('a released record runs again, and its line commits with it', async () => {
    let runs = 0;
    const pay = target.gate.operation({
      name: 'order.pay',
      key: (order: string) => order,
      run: () => ({ run: ++runs, secret: 'pan' }),
    });
    const id = { operation: 'order.pay', scope: '-', key: 'o-1' };
    await pay('o-1');
    const seen = await target.admin.records.inspect(id);
    expect(seen).toMatchObject({ id, state: 'done', expired: false });
    expect(JSON.stringify(seen)).not.toContain('pan');
    const whole = await target.admin.records.inspect(id, { payload: true });
    expect(whole?.result).toEqual({ run: 1, secret: 'pan' });
    expect(await target.admin.as('bob').records.release(id, why)).toBe('done');
    expect(await linesOf('o-1')).toMatchObject([
      { actor: 'bob', act: 'records.release', kind: 'record', ...id, reason: why, outcome: 'done' },
    ]);
    const [line] = await linesOf('o-1');
    expect(Math.abs((line?.atMs ?? 0) - Date.now())).toBeLessThan(60_000);
    expect((await pay('o-1')).value.run).toBe(2);
  });

  it('without its audit line no act happens; an act that does not apply leaves no line', async () => {
    const book = target.gate.operation({
      name: 'room.book',
      key: (key: string) => key,
      run: () => 'ok',
    });
    await book('r-1');
    const id = { operation: 'room.book', scope: '-', key: 'r-1' };
    const audit = {
      ...sqlAudit(target.database),
      write: () => Promise.reject(new Error('disk full')),
    };
    const admin = createAdmin({ ...target.stores, audit, actor: 'ann' });
    await expect(admin.records.release(id, why)).rejects.toThrow();
    expect((await book('r-1')).replayed).toBe(true);
    expect(await linesOf('r-1')).toEqual([]);
    expect(await target.admin.records.release({ ...id, key: 'r-2' }, why)).toBe('missing');
    expect(await linesOf('r-2')).toEqual([]);
    await expect(target.admin.records.release(id, ' ')).rejects.toThrow('reason');
  });

  it('with the audit elsewhere the line comes first and says how the act ended', async () => {
    const audit = sqlAudit(target.database, { elsewhere: true });
    const admin = createAdmin({ ...target.stores, audit, actor: 'ann' });
    const id = { operation: 'none.such', scope: '-', key: 'e-1' };
    expect(await admin.records.release(id, why)).toBe('missing');
    expect(await linesOf('e-1')).toMatchObject([{ outcome: 'missing' }]);
    expect(await admin.locks.release('free', why)).toBe('missing');
    expect(await linesOf('free')).toMatchObject([{ kind: 'lock', outcome: 'missing' }]);
  });

  it('an unknown step is resolved by hand, and the operation goes on with that result', async () => {
    let labels = 0;
    const ship = target.gate.stagedOperation({
      name: 'order.ship',
      key: (order: string) => order,
      run: async (order, { step }) => `${order} ${await step('label', () => `L${++labels}`)}`,
    });
    const id = { operation: 'order.ship', scope: '-', key: 's-1' };
    await leaveUnknown(target, id, 'label');
    await expect(ship('s-1')).rejects.toThrow();
    const seen = await target.admin.staged.inspect(id);
    expect(seen).toMatchObject({
      record: { id, state: 'indeterminate' },
      steps: [{ name: 'label' }],
    });
    expect(seen?.record).not.toHaveProperty('input');
    const { records } = await target.admin.staged.list({ state: 'indeterminate' });
    expect(records.map((record) => record.id.key)).toEqual(['s-1']);
    const happened = { happened: true, result: 'L7' } as const;
    expect(await target.admin.staged.resolve(id, 'other', happened, why)).toBe('refused');
    expect(await linesOf('s-1')).toEqual([]);
    expect(await target.admin.staged.resolve(id, 'label', happened, why)).toBe('done');
    expect((await ship('s-1')).value).toBe('s-1 L7');
    expect(labels).toBe(0);
    expect(await linesOf('s-1')).toMatchObject([
      { act: 'staged.happened', kind: 'staged', detail: 'label', outcome: 'done' },
    ]);
    expect(await target.admin.staged.park(id, why)).toBe('refused'); // Finished.
    const shown = await target.admin.staged.inspect(id, { payload: true });
    expect(shown?.record).toMatchObject({ input: 's-1', result: 's-1 L7' });
  });

  it('a lock is taken from its holder, whose fence is then beaten', async () => {
    const held = await target.gate.acquire('stock:1', { leaseMs: 60_000 });
    const seen = await target.admin.locks.inspect('stock:1');
    expect(seen?.fence).toBe(held.fence);
    expect(await target.admin.locks.release('stock:1', why)).toBe('done');
    expect(await target.admin.locks.inspect('stock:1')).toBeUndefined();
    const next = await target.stores.locks?.tryAcquire({
      name: 'stock:1',
      owner: 'next',
      leaseMs: 1_000,
    });
    expect(next?.kind === 'granted' && next.fence > held.fence).toBe(true);
    expect(await linesOf('stock:1')).toMatchObject([{ act: 'locks.release', outcome: 'done' }]);
  });

  it('a repeat whose result was dropped is told so with the first time, and never runs', async () => {
    let runs = 0;
    const mail = target.gate.operation({
      name: 'mail.send',
      key: (key: string) => key,
      run: () => ({ run: ++runs, body: 'x'.repeat(5_000) }),
    });
    const first = await mail('m-1');
    const results = [{ operation: 'mail.send', resultRetentionMs: 1_000 }];
    const { records } = target.stores;
    expect((await cleanUp({ records, results, pauseMs: 0 })).results).toBe(0);
    await expect
      .poll(async () => (await cleanUp({ records, results, pauseMs: 0 })).results, {
        timeout: 10_000,
      })
      .toBe(1);
    const error = await mail('m-1').catch((reason: unknown) => reason);
    expect(isTurngateError(error, 'RESULT_NOT_KEPT')).toBe(true);
    expect(error).toMatchObject({
      outcome: 'applied',
      replayed: true,
      firstProcessedAt: first.firstProcessedAt,
    });
    expect(runs).toBe(1);
    const shown = await target.admin.records.inspect(
      { operation: 'mail.send', scope: '-', key: 'm-1' },
      { payload: true },
    );
    expect(shown).toMatchObject({ resultBytes: 0, result: undefined });
  });

  it('clean-up deletes all that has expired and nothing else, and stops where it is told', async () => {
    const short = target.gate.operation({
      name: 'short.lived',
      key: (key: string) => key,
      retentionMs: 1_000,
      run: () => 'ok',
    });
    const keys = Array.from({ length: 7 }, (_, i) => `k-${i}`);
    for (const key of keys) await short(key);
    const count = async (expired: boolean): Promise<number> => {
      const page = await target.admin.records.list({ operation: 'short.lived' });
      return page.records.filter((record) => record.expired === expired).length;
    };
    await expect.poll(() => count(true), { timeout: 10_000 }).toBe(7);
    await short('fresh');
    const { records, staged } = target.stores as Required<typeof target.stores>;
    const cut = await cleanUp({ records, staged, batchRows: 2, pauseMs: 0, batchesMax: 2 });
    expect(cut).toEqual({ records: 4, staged: 0, results: 0, finished: false });
    const before = (await target.admin.records.list()).records.filter(({ expired }) => !expired);
    const rest = await cleanUp({ records, staged, batchRows: 2, pauseMs: 0 });
    const again = await cleanUp({ records, staged, batchRows: 2, pauseMs: 0 });
    expect(rest.records + again.records).toBe(3);
    expect([rest.finished, again.finished]).toEqual([true, true]);
    const after = (await target.admin.records.list()).records;
    expect(after.length).toBeGreaterThan(0);
    // "fresh" may have expired meanwhile.
    const lasting = before.filter(({ id }) => id.operation !== 'short.lived').length;
    expect(after.filter(({ id }) => id.operation !== 'short.lived')).toHaveLength(lasting);
  });

  it('the audit is listed newest first, page by page, each line once', async () => {
    for (let i = 0; i < 5; i++) await target.admin.as('pager').locks.release(`p-${i}`, why);
    const seen: string[] = [];
    let after: string | undefined;
    do {
      const page = await target.admin.audit.list({
        actor: 'pager',
        limit: 2,
        ...(after !== undefined && { after }),
      });
      seen.push(...page.lines.map(({ key }) => key));
      after = page.cursor;
    } while (after !== undefined);
    expect(seen.toSorted()).toEqual(['p-0', 'p-1', 'p-2', 'p-3', 'p-4']);
    await expect(target.admin.audit.list({ after: "1 OR '1'" })).rejects.toThrow('cursor');
    await expect(target.admin.records.list({ after: 'x' })).rejects.toThrow('cursor');
  });
}

describeWith('postgres', 'operators on PostgreSQL', () => laws(openPostgres));
describeWith('mariadb', 'operators on MariaDB', () => laws(openMariadb as () => Promise<Opened>));

describe('the HTTP handler', () => {
  const records = memory();
  const locks = memoryLocks();
  const staged = memoryStaged(records);
  const admin = createAdmin({ records, locks, staged, audit: memoryAudit(), actor: 'console' });
  const get = (path: string) => new Request(`http://h/ops/admin/${path}`);
  const post = (path: string, body: unknown, type = 'application/json') =>
    new Request(`http://h/ops/admin/${path}`, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': type },
    });
  const name = 'n';

  it('answers questions, and refuses acts and payloads unless they are allowed', async () => {
    const handle = adminHandler(admin);
    const listed = await handle(get('records/list?operation=a.b&limit=5'));
    expect([listed.status, await listed.json()]).toEqual([200, { records: [] }]);
    expect(listed.headers.get('cache-control')).toBe('no-store');
    expect((await handle(get('locks/inspect?name=n'))).status).toBe(404);
    expect((await handle(get('records/list?opration=a'))).status).toBe(400);
    expect((await handle(get('records/list?limit='))).status).toBe(400);
    expect((await handle(get('records/toString'))).status).toBe(404);
    const payload = 'records/inspect?operation=a.b&scope=-&key=k&payload=1';
    expect((await handle(get(payload))).status).toBe(403);
    expect((await handle(post('locks/release', { name, reason: why }))).status).toBe(403);
  });

  it('acts for the actor of the request, from JSON only, and shows 64-bit numbers as text', async () => {
    const handle = adminHandler(admin, { allowWrites: true, actor: () => 'eve' });
    await locks.tryAcquire({ name, owner: 'o', leaseMs: 60_000 });
    const shown = (await (await handle(get('locks/inspect?name=n'))).json()) as { fence: unknown };
    expect(typeof shown.fence).toBe('string');
    const body = { name, reason: why };
    expect((await handle(post('locks/release', body, 'text/plain'))).status).toBe(400);
    expect((await handle(post('locks/release', { name }))).status).toBe(400);
    expect((await handle(post('locks/release', body))).status).toBe(200);
    expect((await handle(post('locks/release', body))).status).toBe(404);
    const { lines } = await admin.audit.list({ actor: 'eve' });
    expect(lines.map(({ outcome }) => outcome)).toEqual(['missing', 'done']);
  });
});
