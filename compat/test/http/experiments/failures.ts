/** What is not a fact is not kept: the work is rolled back and a retry runs again. */

import { refuse } from 'turngate';
import { expect } from 'vitest';
import { gatePromise, send, until } from '../client.ts';
import type { Experiment } from '../experiments.ts';

export const failureExperiments: readonly Experiment[] = [
  ...[401, 403, 408, 425, 429, 500, 503].map(
    (status): Experiment => ({
      law: `L39: a ${status} is rolled back, and the retry runs again`,
      async run({ app, tag, world }) {
        let tries = 0;
        const { url } = await app({
          path: '/flaky',
          async handle(call) {
            await call.effect(`${tag}try${++tries}`);
            const headers = { 'content-type': 'text/plain', 'retry-after': '7' };
            return tries === 1 ? { status, headers, body: 'later' } : { status: 201, body: 'done' };
          },
        });
        const first = await send(`${url}/flaky`, { key: 'k', body: '{}' });
        expect([first.status, first.text, first.headers['retry-after']]).toEqual([
          status,
          'later',
          '7',
        ]);
        expect(first.headers['idempotency-outcome']).toBe('not-applied');
        expect(await world.lines(tag)).toEqual([]);
        const retry = await send(`${url}/flaky`, { key: 'k', body: '{}' });
        expect([retry.status, retry.headers['idempotent-replayed']]).toEqual([201, undefined]);
        expect(await world.lines(tag)).toEqual([`${tag}try2`]);
      },
    }),
  ),
  {
    law: 'L41: an error thrown by the handler keeps its status and frees the key',
    async run({ app, tag, world }) {
      let tries = 0;
      const { url } = await app({
        path: '/throws',
        async handle(call) {
          await call.effect(`${tag}try${++tries}`);
          if (tries === 1)
            throw Object.assign(new Error('not now'), { status: 503, statusCode: 503 });
          return { status: 201, body: 'done' };
        },
      });
      const first = await send(`${url}/throws`, { key: 'k', body: '{}' });
      expect([first.status, JSON.parse(first.text).message]).toEqual([503, 'not now']);
      expect(await world.lines(tag)).toEqual([]);
      const retry = await send(`${url}/throws`, { key: 'k', body: '{}' });
      expect(retry.status).toBe(201);
      expect(await world.lines(tag)).toEqual([`${tag}try2`]);
    },
  },
  {
    law: 'L41: an error answer that is a fact is stored with the status the client saw',
    async run({ app }) {
      let tries = 0;
      const { url } = await app({
        path: '/conflict',
        handle() {
          tries++;
          throw Object.assign(new Error('sold out'), { status: 409, statusCode: 409 });
        },
      });
      const first = await send(`${url}/conflict`, { key: 'k', body: '{}' });
      expect(first.status).toBe(409);
      const repeat = await send(`${url}/conflict`, { key: 'k', body: '{}' });
      // A framework whose errors leave the middleware as exceptions frees the key: see its notes.
      if (tries === 1) {
        expect(repeat.text).toBe(first.text);
        expect(repeat.headers['content-type']).toBe(first.headers['content-type']);
      } else expect(repeat.status).toBe(409);
    },
  },
  {
    law: 'a refusal thrown by the handler is never a success, first or repeat',
    async run({ app, tag, world }) {
      const { url } = await app({
        path: '/refuse',
        async handle(call) {
          await call.effect(`${tag}x`);
          throw refuse('SOLD_OUT', 'nothing left');
        },
      });
      for (let i = 0; i < 2; i++) {
        const { status } = await send(`${url}/refuse`, { key: 'k', body: '{}' });
        expect(status).toBeGreaterThanOrEqual(400);
        expect(await world.lines(tag)).toEqual([]);
      }
    },
  },
  {
    law: 'L25: what the handler does to its request does not change key or fingerprint',
    async run({ app }) {
      let tries = 0;
      const { url } = await app({
        path: '/mutates',
        handle({ native }) {
          tries++;
          const request = native as { headers?: Record<string, string>; body?: unknown };
          if (request.headers !== undefined) request.headers['idempotency-key'] = 'other';
          try {
            request.body = 'changed';
          } catch {
            // A framework that does not let it change is as good.
          }
          return { body: 'ok' };
        },
      });
      await send(`${url}/mutates`, { key: 'k', body: '{"a":1}' });
      const repeat = await send(`${url}/mutates`, { key: 'k', body: '{"a":1}' });
      expect([repeat.headers['idempotent-replayed'], tries]).toEqual(['true', 1]);
    },
  },
  {
    law: 'waiters of work that was rolled back do not get the cookies of the first',
    async run({ app }) {
      const gate = gatePromise();
      let tries = 0;
      const { url } = await app({
        path: '/released',
        async handle() {
          tries++;
          await gate.opened;
          const headers = { 'set-cookie': `try=${tries}`, 'content-type': 'text/plain' };
          return { status: 503, headers, body: 'later' };
        },
      });
      const all = Array.from({ length: 5 }, () =>
        send(`${url}/released`, { key: 'k', body: '{}' }),
      );
      await until(() => tries > 0);
      gate.open();
      const answers = await Promise.all(all);
      expect(answers.map(({ status, text }) => `${status} ${text}`)).toEqual(
        Array.from({ length: 5 }, () => '503 later'),
      );
      const cookies = answers.filter(({ headers }) => headers['set-cookie'] !== undefined);
      expect(cookies.length).toBe(tries);
    },
  },
  {
    law: 'no byte leaves before the commit: a commit that fails is not a success',
    async run({ app, tag, world }) {
      const { url } = await app({
        path: '/late',
        async handle(call) {
          await call.effect(`${tag}late-refusal`);
          const headers = { 'set-cookie': 'sid=1', location: '/orders/1', 'x-made': 'yes' };
          return { status: 201, headers, body: 'created' };
        },
      });
      const { status, headers, text } = await send(`${url}/late`, { key: 'k', body: '{}' });
      expect(status, text).toBeGreaterThanOrEqual(500);
      expect(text).not.toContain('created');
      for (const name of ['set-cookie', 'location', 'x-made'])
        expect(headers[name]).toBeUndefined();
      expect(await world.lines(tag)).toEqual([]);
    },
  },
  {
    law: 'L67: a swallowed failed statement is not a success',
    async run({ app, tag, world }) {
      const { url } = await app({
        path: '/swallowed',
        async handle(call) {
          await call.effect(`${tag}x`);
          await world.spoil?.(call.tx, 'undone').catch(() => {});
          return { status: 201, body: 'created' };
        },
      });
      const answer = await send(`${url}/swallowed`, { key: 'k', body: '{}' });
      expect(answer.status).toBe(500);
      expect(JSON.parse(answer.text).code).toMatch(/^TRANSACTION_(ROLLED_BACK|REQUIRED)$/);
      expect(await world.lines(tag)).toEqual([]);
    },
  },
  {
    law: 'a deadlock victim is told to come again, and does',
    async run({ app, tag, world }) {
      let tries = 0;
      const { url } = await app({
        path: '/deadlock',
        async handle(call) {
          await call.effect(`${tag}try${++tries}`);
          if (tries === 1) await world.spoil?.(call.tx, 'deadlock');
          return { status: 201, body: 'created' };
        },
      });
      const first = await send(`${url}/deadlock`, { key: 'k', body: '{}' });
      expect(first.status).toBeGreaterThanOrEqual(500);
      const retry = await send(`${url}/deadlock`, { key: 'k', body: '{}' });
      expect([retry.status, retry.text]).toEqual([201, 'created']);
      expect(await world.lines(tag)).toEqual([`${tag}try2`]);
    },
  },
];
