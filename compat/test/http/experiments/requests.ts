/** Which requests enter, what identifies them, and what a wrong one gets. */
import { expect } from 'vitest';
import { send } from '../client.ts';
import type { Experiment, Lab } from '../experiments.ts';
import type { Route } from '../world.ts';

/** A route that writes one effect per run. */
function counting(lab: Lab, path: string, more: Partial<Route> = {}): Route {
  return {
    path,
    async handle(call) {
      await call.effect(`${lab.tag}${path}`);
      return { status: 201, headers: { 'content-type': 'text/plain' }, body: `did ${call.text}` };
    },
    ...more,
  };
}

const runs = async ({ world, tag }: Lab): Promise<number> => (await world.lines(tag)).length;

const wrongKeys: readonly (readonly [string, string | string[]])[] = [
  ['empty', ''],
  ['an empty string item', '""'],
  ['blank', '" "'],
  ['sent twice, one value', ['a', 'a']],
  ['sent twice, two values', ['a', 'b']],
  ['two strings', '"a", "a"'],
  ['joined by a proxy', 'a, a'],
  ['with a blank inside', 'a b'],
  ['half quoted', '"a'],
  ['not ASCII', 'cl\u00e9'],
  ['too long', 'k'.repeat(256)],
];

/** Sends a request the layer must refuse; nothing may be left of it. */
async function refused(
  lab: Lab,
  url: string,
  what: Parameters<typeof send>[1],
  expected: { status: number; code: string },
): Promise<void> {
  const before = await lab.world.records();
  const answer = await send(url, what);
  expect(answer.status, answer.text).toBe(expected.status);
  expect(answer.headers['content-type']).toBe('application/problem+json');
  expect(JSON.parse(answer.text)).toMatchObject({ code: expected.code, outcome: 'not-applied' });
  expect(await lab.world.records()).toBe(before);
  expect(await runs(lab)).toBe(0);
}

export const requestExperiments: readonly Experiment[] = [
  ...wrongKeys.map(
    ([what, key]): Experiment => ({
      law: `a key that is ${what} is 400 and leaves no record`,
      async run(lab) {
        const { url } = await lab.app(counting(lab, '/pay'));
        const headers = { 'idempotency-key': key };
        const expected = { status: 400, code: 'IDEMPOTENCY_KEY_INVALID' };
        await refused(lab, `${url}/pay`, { headers, body: '{}' }, expected);
      },
    }),
  ),
  {
    law: 'two halves of a quoted string in two headers are not one key',
    async run(lab) {
      const { url } = await lab.app(counting(lab, '/pay'));
      const headers = { 'idempotency-key': ['"a', 'b"'] };
      const expected = { status: 400, code: 'IDEMPOTENCY_KEY_INVALID' };
      await refused(lab, `${url}/pay`, { headers, body: '{}' }, expected);
    },
  },
  {
    law: 'L3: a missing key is 400 where it is required',
    async run(lab) {
      const { url } = await lab.app(counting(lab, '/pay'));
      const expected = { status: 400, code: 'IDEMPOTENCY_KEY_MISSING' };
      await refused(lab, `${url}/pay`, { body: '{}' }, expected);
    },
  },
  {
    law: 'L3: two requests without a key run twice where it is not required',
    async run(lab) {
      let count = 0;
      const handle = (): { body: string } => ({ body: String(++count) });
      const { url } = await lab.app({ path: '/opt', options: { required: false }, handle });
      await send(`${url}/opt`, { body: '{}' });
      const second = await send(`${url}/opt`, { body: '{}' });
      expect([second.text, second.headers['idempotent-replayed']]).toEqual(['2', undefined]);
    },
  },
  {
    law: 'bare and quoted are one key, parameters are ignored',
    async run(lab) {
      const { url } = await lab.app(counting(lab, '/pay'));
      for (const key of ['k1', '"k1"', '"k1";v=1']) {
        expect((await send(`${url}/pay`, { key, body: '{}' })).status).toBe(201);
      }
      expect(await runs(lab)).toBe(1);
    },
  },
  {
    law: 'the longest key works',
    async run(lab) {
      const { url } = await lab.app(counting(lab, '/pay'));
      const keys = ['k'.repeat(255), `${'k'.repeat(254)}j`, 'k'.repeat(232), 'k'.repeat(233)];
      for (const key of [...keys, ...keys]) {
        expect((await send(`${url}/pay`, { key, body: '{}' })).status).toBe(201);
      }
      expect(await runs(lab)).toBe(keys.length);
    },
  },
  {
    law: 'a body over the cap is 413 before the claim, with and without a length',
    async run(lab) {
      const { url } = await lab.app(counting(lab, '/pay', { options: { bodyBytesMax: 1_000 } }));
      const body = 'x'.repeat(1_001);
      const expected = { status: 413, code: 'PAYLOAD_TOO_LARGE' };
      await refused(lab, `${url}/pay`, { key: 'k', body }, expected);
      const headers = { 'transfer-encoding': 'chunked', 'content-length': [] };
      await refused(lab, `${url}/pay`, { key: 'k', body, headers }, expected);
      expect((await send(`${url}/pay`, { key: 'k', body: 'x'.repeat(1_000) })).status).toBe(201);
    },
  },
  {
    law: 'the handler reads the whole body, whatever the layer has read of it',
    async run(lab) {
      const { url } = await lab.app(counting(lab, '/pay'));
      for (const size of [0, 1, 70_000, 400_000]) {
        const body = 'y'.repeat(size);
        const answer = await send(`${url}/pay`, { key: `k${size}`, body });
        expect(answer.text).toBe(`did ${body}`);
        const chunked = { 'transfer-encoding': 'chunked', 'content-length': [] };
        const again = await send(`${url}/pay`, { key: `c${size}`, body, headers: chunked });
        expect(again.text).toBe(`did ${body}`);
      }
    },
  },
  {
    law: 'bad JSON, a repeated name and an unsafe integer are 400 where JSON is compared',
    async run(lab) {
      const options = {
        fingerprint: (_: never, body: { bytes: Uint8Array | undefined; json(): unknown }) =>
          body.json(),
      };
      const { url } = await lab.app(counting(lab, '/pay', { options }));
      for (const body of ['{"a":', '{"a":1,"a":2}', '{"a":9007199254740993}', '\u{fffd}']) {
        const expected = { status: 400, code: 'PAYLOAD_INVALID' };
        await refused(lab, `${url}/pay`, { key: 'k', body }, expected);
      }
    },
  },
  {
    law: 'JSON comparison: order and white space mean nothing, a value does',
    async run(lab) {
      const { url } = await lab.app(counting(lab, '/pay', { options: { fingerprint: 'json' } }));
      const status = async (body: string): Promise<number> =>
        (await send(`${url}/pay`, { key: 'k', body })).status;
      expect(await status('{"a":1,"b":"x"}')).toBe(201);
      expect(await status('{ "b":"x", "a":1.0 }')).toBe(201);
      expect(await status('{"a":2,"b":"x"}')).toBe(422);
      expect(await runs(lab)).toBe(1);
    },
  },
  {
    law: 'L9: another payload is 422 and the record stays',
    async run(lab) {
      const { url } = await lab.app(counting(lab, '/pay'));
      const first = await send(`${url}/pay`, { key: 'k', body: '{"amount":1}' });
      const other = await send(`${url}/pay`, { key: 'k', body: '{"amount":"1"}' });
      expect([other.status, JSON.parse(other.text).code]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED']);
      const repeat = await send(`${url}/pay`, { key: 'k', body: '{"amount":1}' });
      expect([repeat.status, repeat.text]).toEqual([201, first.text]);
      expect(await runs(lab)).toBe(1);
    },
  },
  {
    law: 'L15: equal bodies with other keys, users and routes all run',
    async run(lab) {
      const { url } = await lab.app(counting(lab, '/a'), counting(lab, '/b'));
      for (const path of ['/a', '/b'])
        for (const user of ['alice', 'bob'])
          for (const key of ['k1', 'k2']) await send(url + path, { key, user, body: '{"x":1}' });
      expect(await runs(lab)).toBe(8);
    },
  },
  {
    law: 'L35: one key on two resources and two queries is two identities',
    async run(lab) {
      const { url } = await lab.app(counting(lab, '/orders/:id/pay'));
      for (const target of ['/orders/1/pay', '/orders/2/pay', '/orders/1/pay?mode=x']) {
        const first = await send(url + target, { key: 'k', body: '{}' });
        const repeat = await send(url + target, { key: 'k', body: '{}' });
        expect([first.status, repeat.headers['idempotent-replayed']]).toEqual([201, 'true']);
      }
      expect(await runs(lab)).toBe(3);
    },
  },
  {
    law: 'L31: another user with the same key and body has a run of their own',
    async run(lab) {
      const { url } = await lab.app({
        path: '/who',
        async handle(call) {
          await call.effect(`${lab.tag}who`);
          return { body: `${(await lab.world.lines(lab.tag)).length}` };
        },
      });
      const alice = await send(`${url}/who`, { key: 'k', user: 'alice', body: '{}' });
      const bob = await send(`${url}/who`, { key: 'k', user: 'bob', body: '{}' });
      expect(bob.headers['idempotent-replayed']).toBeUndefined();
      expect(bob.text).not.toBe(alice.text);
    },
  },
  {
    law: 'L31: nobody to belong to is 400: there is no anonymous bucket',
    async run(lab) {
      const { url } = await lab.app(counting(lab, '/pay'));
      for (const user of [undefined, '', ' ']) {
        const expected = { status: 400, code: 'IDEMPOTENCY_SCOPE_MISSING' };
        await refused(lab, `${url}/pay`, { key: 'k', user, body: '{}' }, expected);
      }
    },
  },
  {
    law: 'L31: a name that can be nobody is 400 too',
    async run(lab) {
      const { url } = await lab.app(counting(lab, '/pay'));
      const expected = { status: 400, code: 'IDEMPOTENCY_SCOPE_INVALID' };
      const user = 'u'.repeat(256);
      await refused(lab, `${url}/pay`, { key: 'k', user, body: '{}' }, expected);
    },
  },
  {
    law: 'L19: internal-looking headers of a client mean nothing',
    async run(lab) {
      const { url } = await lab.app(counting(lab, '/pay'));
      const headers = {
        'x-hit': 'true',
        'idempotent-replayed': 'true',
        'idempotency-outcome': 'x',
      };
      const { status } = await send(`${url}/pay`, { key: 'k', headers, body: '{}' });
      expect([status, await runs(lab)]).toEqual([201, 1]);
    },
  },
  {
    law: 'L61: a key on GET is ignored and leaves no record',
    async run(lab) {
      let count = 0;
      const { url } = await lab.app({
        path: '/read',
        method: 'get',
        handle: () => ({ body: String(++count) }),
      });
      const before = await lab.world.records();
      await send(`${url}/read`, { method: 'GET', key: 'k' });
      await send(`${url}/read`, { method: 'HEAD', key: 'k' });
      const last = await send(`${url}/read`, { method: 'GET', key: 'k' });
      expect(Number(last.text)).toBeGreaterThanOrEqual(2);
      expect(last.headers['idempotent-replayed']).toBeUndefined();
      expect(await lab.world.records()).toBe(before);
    },
  },
  {
    law: 'L63: a preflight passes, and a browser-made key to a route without the layer is ignored',
    async run(lab) {
      const { url } = await lab.app(
        { path: '/pay', method: 'options', handle: () => ({ status: 204 }) },
        { path: '/open', protect: false, handle: () => ({ body: 'open' }) },
      );
      const headers = { 'access-control-request-headers': 'idempotency-key' };
      expect((await send(`${url}/pay`, { method: 'OPTIONS', headers })).status).toBe(204);
      const open = await send(`${url}/open`, { key: '"8e03978e-40d5-43dd-bc93-6894a57f9324"' });
      expect([open.status, open.text]).toEqual([200, 'open']);
    },
  },
];
