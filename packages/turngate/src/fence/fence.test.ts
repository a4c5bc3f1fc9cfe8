/** Fences without a server: border checks, the header, the guard of one process. */
import { describe, expect, it } from 'vitest';
import type { SqlSession } from '../contract/sql-session.ts';
import {
  fencedRows,
  fenceMarks,
  formatFence,
  memoryFenceGuard,
  parseFence,
  redisFence,
} from './index.ts';

const invalid = (code: string) => expect.objectContaining({ code });

describe('the header', () => {
  it('carries step and fence there and back, over all 63 bits', () => {
    for (const verb of ['enter', 'check'] as const) {
      for (const fence of [1n, 1_795_992_872_123_456n, 2n ** 63n - 1n]) {
        expect(parseFence(formatFence(verb, fence))).toEqual({ verb, fence });
        expect(parseFence([formatFence(verb, fence)])).toEqual({ verb, fence });
      }
    }
  });

  it('is refused in any other spelling', () => {
    const wrong = [
      undefined,
      null,
      '',
      '7',
      'check',
      'check 0',
      'check 07',
      'check -7',
      'check 7 ',
      ' check 7',
      'check  7',
      'CHECK 7',
      'write 7',
      'check 7.0',
      'check 0x7',
      'check 7\n',
      'check 9223372036854775808',
      'check 7, check 8',
      ['check 7', 'check 8'],
      [],
    ];
    for (const value of wrong) {
      expect(() => parseFence(value), JSON.stringify(value)).toThrow(invalid('FENCE_INVALID'));
    }
    expect(() => formatFence('write' as 'check', 1n)).toThrow(invalid('OPTION_INVALID'));
    expect(() => formatFence('check', 0n)).toThrow(invalid('OPTION_INVALID'));
  });
});

describe('border checks', () => {
  const session: SqlSession = {
    dialect: 'postgres',
    query: () => {
      throw new Error('no statement may be sent');
    },
  };

  it('names cannot smuggle SQL', () => {
    for (const name of ['a"b', 'a b', 'a;--', '', 'a.b.', '1a']) {
      expect(() => fencedRows({ table: name })).toThrow(invalid('OPTION_INVALID'));
      expect(() => fencedRows({ table: 't', idColumn: name })).toThrow(invalid('OPTION_INVALID'));
      expect(() => fenceMarks({ table: name })).toThrow(invalid('OPTION_INVALID'));
    }
    expect(() => fencedRows({ tabel: 't' } as never)).toThrow(invalid('OPTION_INVALID'));
  });

  it('a fence that is none sends nothing', async () => {
    for (const fence of [0n, -1n, 2n ** 63n, 5, undefined, '7']) {
      const bad = { fence: fence as bigint };
      const calls = [
        () => fencedRows({ table: 't' }).enter(session, { id: 1, ...bad }),
        () => fenceMarks().enter(session, { resource: 'r', ...bad }),
        () => fenceMarks().check(session, { resource: 'r', ...bad }),
        () =>
          memoryFenceGuard().run({ resource: 'r', verb: 'enter', ...bad }, async () => undefined),
      ];
      for (const call of calls) await expect(call()).rejects.toThrow(invalid('OPTION_INVALID'));
    }
  });

  it('a write names neither the id nor the fence nor nothing', async () => {
    const rows = [{ id: 1, fence: '7', turngate_mark: '7' }];
    let sent = 0;
    const one: SqlSession = {
      dialect: 'postgres',
      query: async () => {
        sent++;
        return { rows, affectedRows: 1 };
      },
    };
    const entry = await fencedRows({ table: 't' }).enter(one, { id: 1, fence: 7n });
    for (const changes of [{}, { id: 2 }, { fence: 9n }, { 'a" = 1, "b': 2 }]) {
      await expect(entry?.write(changes as never)).rejects.toThrow(invalid('OPTION_INVALID'));
    }
    expect(sent).toBe(1);
  });

  it('a client that is no Redis client is refused', () => {
    expect(() => redisFence({} as never)).toThrow(invalid('OPTION_INVALID'));
  });
});

describe('the guard of one process', () => {
  const open = () => {
    const guard = memoryFenceGuard();
    const send = (verb: 'enter' | 'check', fence: bigint, body = async () => 'done') =>
      guard.run({ resource: 'port', verb, fence }, body);
    return { guard, send };
  };

  it('lets the newest through and refuses the older, also a check that never entered', async () => {
    const { guard, send } = open();
    await expect(send('check', 5n)).rejects.toThrow(invalid('FENCE_STALE'));
    expect(await send('enter', 5n)).toBe('done');
    expect(await send('check', 5n)).toBe('done');
    await expect(send('check', 6n)).rejects.toThrow(invalid('FENCE_STALE'));
    expect(await send('enter', 6n)).toBe('done');
    await expect(send('check', 5n)).rejects.toThrow(invalid('FENCE_STALE'));
    await expect(send('enter', 5n)).rejects.toThrow(invalid('FENCE_STALE'));
    const other = { resource: 'other', verb: 'enter', fence: 1n } as const;
    expect(await guard.run(other, async () => 'done')).toBe('done');
  });

  it('nobody enters while a body runs, and a body that fails does not block the next', async () => {
    const { send } = open();
    const log: string[] = [];
    const body = (name: string) => async () => {
      log.push(`${name} starts`);
      await new Promise((resolve) => setImmediate(resolve));
      log.push(`${name} ends`);
      return name;
    };
    await send('enter', 1n);
    const results = await Promise.allSettled([
      send('check', 1n, body('a')),
      send('check', 1n, async () => {
        throw new Error('failed');
      }),
      send('enter', 2n, body('b')),
      send('check', 1n, body('late')),
    ]);
    expect(log).toEqual(['a starts', 'a ends', 'b starts', 'b ends']);
    expect(results.map(({ status }) => status)).toEqual([
      'fulfilled',
      'rejected',
      'fulfilled',
      'rejected',
    ]);
  });
});
