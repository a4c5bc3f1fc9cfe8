/** Repeats while the first runs, and clients that go away. */

import type { HttpOptions } from 'turngate/express';
import { expect } from 'vitest';
import { gatePromise, send, until } from '../client.ts';
import type { Experiment, Lab } from '../experiments.ts';
import type { Route } from '../world.ts';

type Options = Omit<HttpOptions<never>, 'scope'>;

/** A route whose handler waits until it is let go. */
function held(lab: Lab, options: Options = {}): { route: Route; started(): number; open(): void } {
  const gate = gatePromise();
  let started = 0;
  const route: Route = {
    path: '/slow',
    options,
    async handle(call) {
      started++;
      await gate.opened;
      await call.effect(`${lab.tag}slow`);
      return { status: 201, headers: { 'content-type': 'text/plain' }, body: 'slow result' };
    },
  };
  return { route, started: () => started, open: gate.open };
}

export const flightExperiments: readonly Experiment[] = [
  {
    law: 'L1 L21: 20 at once: one run, all others get its answer',
    async run(lab) {
      const { route, open, started } = held(lab);
      const { url } = await lab.app(route);
      const all = Array.from({ length: 20 }, () => send(`${url}/slow`, { key: 'k', body: '{}' }));
      await until(() => started() > 0);
      open();
      const answers = await Promise.all(all);
      expect(answers.map(({ status, text }) => `${status} ${text}`)).toEqual(
        Array.from({ length: 20 }, () => '201 slow result'),
      );
      const marks = answers.filter(({ headers }) => headers['idempotent-replayed'] === 'true');
      expect(marks.length).toBe(19);
      expect(await lab.world.lines(lab.tag)).toEqual([`${lab.tag}slow`]);
    },
  },
  {
    law: 'L57: reject: 409 with a Retry-After while the first runs, its answer afterwards',
    async run(lab) {
      const { route, open, started } = held(lab, { inFlight: 'reject' });
      const { url } = await lab.app(route);
      const first = send(`${url}/slow`, { key: 'k', body: '{}' });
      await until(() => started() > 0);
      const early = await send(`${url}/slow`, { key: 'k', body: '{}' });
      expect([early.status, JSON.parse(early.text).code]).toEqual([409, 'REQUEST_IN_PROGRESS']);
      expect(JSON.parse(early.text).outcome).toBe('unknown');
      expect(Number(early.headers['retry-after'])).toBeGreaterThanOrEqual(1);
      open();
      expect((await first).status).toBe(201);
      const late = await send(`${url}/slow`, { key: 'k', body: '{}' });
      expect([late.status, late.headers['idempotent-replayed']]).toEqual([201, 'true']);
    },
  },
  {
    law: 'wait is bounded: 409 after waitMs',
    async run(lab) {
      const { route, open, started } = held(lab, { waitMs: 50 });
      const { url } = await lab.app(route);
      const first = send(`${url}/slow`, { key: 'k', body: '{}' });
      await until(() => started() > 0);
      const early = await send(`${url}/slow`, { key: 'k', body: '{}' });
      expect(early.status).toBe(409);
      open();
      expect((await first).status).toBe(201);
    },
  },
  {
    law: '202: says where to ask while the first runs',
    async run(lab) {
      const statusUrl = (ticket: string): string => `/status/${ticket}`;
      const { route, open, started } = held(lab, { inFlight: '202', statusUrl });
      const { url } = await lab.app(route);
      const first = send(`${url}/slow`, { key: 'k', body: '{}' });
      await until(() => started() > 0);
      const early = await send(`${url}/slow`, { key: 'k', body: '{}' });
      expect(early.status).toBe(202);
      expect(early.headers['location']).toMatch(/^\/status\/[\w-]+$/);
      expect(Number(early.headers['retry-after'])).toBeGreaterThanOrEqual(1);
      open();
      expect((await first).status).toBe(201);
    },
  },
  {
    law: 'another payload is 422 also while the first runs',
    async run(lab) {
      const { route, open, started } = held(lab);
      const { url } = await lab.app(route);
      const first = send(`${url}/slow`, { key: 'k', body: '{"amount":1}' });
      await until(() => started() > 0);
      const other = await send(`${url}/slow`, { key: 'k', body: '{"amount":2}' });
      expect(other.status).toBe(422);
      open();
      expect((await first).status).toBe(201);
    },
  },
  {
    law: 'L45: a client that went away loses neither the effect nor the answer',
    async run(lab) {
      const { route, open, started } = held(lab);
      const { url } = await lab.app(route);
      const leaving = new AbortController();
      const left = send(`${url}/slow`, { key: 'k', body: '{}', signal: leaving.signal });
      await until(() => started() > 0);
      leaving.abort();
      await expect(left).rejects.toThrow();
      const retry = send(`${url}/slow`, { key: 'k', body: '{}' });
      open();
      const { status, text } = await retry;
      expect([status, text, started()]).toEqual([201, 'slow result', 1]);
      expect(await lab.world.lines(lab.tag)).toEqual([`${lab.tag}slow`]);
    },
  },
  {
    law: 'L45: with nobody waiting, the work is finished and recorded',
    async run(lab) {
      const { route, open, started } = held(lab);
      const { url } = await lab.app(route);
      const leaving = new AbortController();
      const left = send(`${url}/slow`, { key: 'k', body: '{}', signal: leaving.signal });
      await until(() => started() > 0);
      leaving.abort();
      await expect(left).rejects.toThrow();
      open();
      await until(async () => (await lab.world.lines(lab.tag)).length === 1);
      await until(() => lab.world.gate.load.inFlight === 0);
      const retry = await send(`${url}/slow`, { key: 'k', body: '{}' });
      expect([retry.status, retry.headers['idempotent-replayed'], started()]).toEqual([
        201,
        'true',
        1,
      ]);
    },
  },
];
