/** The protocol over plain values, with the memory store. */
import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { door } from '../../test/support/clock.ts';
import { fingerprintOf } from '../core/fingerprint.ts';
import { createGate } from '../gate/gate.ts';
import { onEvent } from '../runtime/events.ts';
import { memory } from '../stores/memory/index.ts';
import { operationNameOf } from './identity.ts';
import { createHttpLayer } from './layer.ts';
import {
  type HandlerResponse,
  type HttpRequest,
  type HttpResponse,
  headerValue,
} from './message.ts';
import type { HttpOptions } from './options.ts';
import { aesGcmCodec } from './response-codec.ts';

type Native = { user: string };

function request(key: string, body = '{}', user = 'alice'): HttpRequest<Native> {
  return {
    method: 'POST',
    route: '/pay',
    url: '/pay',
    native: { user },
    header: (name) => (name === 'idempotency-key' ? key : undefined),
    readBody: async () => Buffer.from(body),
  };
}

const scope = ({ user }: Native): string => user;
const ok: HandlerResponse = { status: 201, headers: [['x', 'y']], body: Buffer.from('made') };

function layerOf(options: HttpOptions<Native> = { scope }, recordsMax = 1_000) {
  return createHttpLayer(createGate({ records: memory({ recordsMax }) }), options);
}

function sent(answer: { kind: string; response?: HttpResponse }): HttpResponse {
  expect(answer.kind).toBe('send');
  return answer.response as HttpResponse;
}

const codeOf = (response: HttpResponse): string => JSON.parse(String(response.body)).code;

describe('options of a route', () => {
  const wrong: [string, object][] = [
    ['no scope', {}],
    ['both scope and global', { scope, dangerouslyGlobal: true }],
    ['global but false', { dangerouslyGlobal: false }],
    ['a misspelt option', { scope, waitMS: 1 }],
    ['a safe method', { scope, methods: ['GET'] }],
    ['a cookie to store', { scope, storeHeaders: ['set-cookie'] }],
    ['202 without a status URL', { scope, inFlight: '202' }],
    ['a bad fingerprint', { scope, fingerprint: 'body' }],
    ['a bad name', { scope, name: 'Order Create' }],
    ['a bad cap', { scope, bodyBytesMax: -1 }],
    ['a codec that is none', { scope, codec: {} }],
  ];
  it.each(wrong)('%s is refused at once', (_, options) => {
    expect(() => layerOf(options as HttpOptions<Native>)).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID' }),
    );
  });

  it('one route on one gate has one set of terms', async () => {
    const gate = createGate({ records: memory() });
    const a = createHttpLayer(gate, { scope, waitMs: 5 });
    const b = createHttpLayer(gate, { scope, waitMs: 5 });
    const c = createHttpLayer(gate, { scope, waitMs: 6 });
    expect((await a.handle(request('k'), async () => ok)).kind).toBe('handler');
    expect((await b.handle(request('k'), async () => ok)).kind).toBe('send');
    expect(codeOf(sent(await c.handle(request('k'), async () => ok)))).toBe('OPTION_INVALID');
  });
});

describe('the layer', () => {
  it('a plain handler may run again after a deadlock where it says so', async () => {
    const layer = layerOf();
    const answer = await layer.handle(request('k'), async () => ok, { repeatable: true });
    expect(answer.kind).toBe('handler');
  });

  it('a refusal that is thrown is remembered: the same problem for first and repeat', async () => {
    const { refuse } = await import('../core/errors.ts');
    const layer = layerOf();
    const run = async (): Promise<HandlerResponse> => {
      throw refuse('SOLD_OUT', 'nothing left');
    };
    const first = sent(await layer.handle(request('k'), run));
    const repeat = sent(await layer.handle(request('k'), run));
    expect([first.status, codeOf(first)]).toEqual([409, 'SOLD_OUT']);
    expect(String(repeat.body)).toBe(String(first.body));
    expect(headerValue(first.headers, 'idempotent-replayed')).toBeUndefined();
    expect(headerValue(repeat.headers, 'idempotent-replayed')).toBe('true');
  });

  it('an error of the handler comes out as it is', async () => {
    const error = new Error('mine');
    await expect(layerOf().handle(request('k'), () => Promise.reject(error))).rejects.toBe(error);
  });

  it('repeat: reject answers 409 with the time of the first', async () => {
    const layer = layerOf({ scope, repeat: 'reject' });
    await layer.handle(request('k'), async () => ok);
    const again = sent(await layer.handle(request('k'), async () => ok));
    expect([again.status, codeOf(again)]).toEqual([409, 'DUPLICATE_REQUEST']);
  });

  it('sealed: opens for the repeat, and a lost key is 500 and never a second run', async () => {
    const gate = createGate({ records: memory() });
    const keys = { a: randomBytes(32) };
    const sealed = createHttpLayer(gate, { scope, codec: aesGcmCodec({ keys, current: 'a' }) });
    await sealed.handle(request('k'), async () => ok);
    const repeat = sent(await sealed.handle(request('k'), async () => ok));
    expect([repeat.status, String(repeat.body)]).toEqual([201, 'made']);
    const other = aesGcmCodec({ keys: { b: randomBytes(32) }, current: 'b' });
    for (const options of [{ scope, codec: other }, { scope }]) {
      const layer = createHttpLayer(gate, options);
      const run = (): never => expect.unreachable('ran again');
      const answer = sent(await layer.handle(request('k'), run));
      expect([answer.status, codeOf(answer)]).toEqual([500, 'RECORD_UNREADABLE']);
    }
  });

  it('mapProblem chooses another status', async () => {
    const layer = layerOf({ scope, mapProblem: (problem) => ({ ...problem, status: 417 }) });
    expect(sent(await layer.handle(request(''), async () => ok)).status).toBe(417);
  });
});

describe('a status URL', () => {
  it('says 202 while it runs, then the answer, to the same scope only', async () => {
    const tickets: string[] = [];
    const statusUrl = (ticket: string): string => `/s/${tickets.push(ticket)}`;
    const layer = layerOf({ scope, inFlight: '202', statusUrl });
    const held = door();
    const work = async (): Promise<HandlerResponse> => {
      await held.opened;
      return ok;
    };
    const first = layer.handle(request('k'), work);
    const accepted = sent(await layer.handle(request('k'), work));
    expect([accepted.status, headerValue(accepted.headers, 'location')]).toEqual([202, '/s/1']);
    const ticket = tickets[0] as string;
    expect((await layer.status(ticket, 'alice')).status).toBe(202);
    expect((await layer.status(ticket, 'bob')).status).toBe(404);
    held.open();
    expect((await first).kind).toBe('handler');
    const done = await layer.status(ticket, 'alice');
    expect([done.status, String(done.body)]).toEqual([201, 'made']);
    expect((await layer.status(ticket, 'bob')).status).toBe(404);
    for (const bad of ['', 'x', Buffer.from('[1,2,3]').toString('base64url')]) {
      expect((await layer.status(bad, 'alice')).status).toBe(404);
    }
  });
});

describe('a status question', () => {
  const statusUrl = (ticket: string): string => ticket;
  /** Whether its work is declared yet is nothing a client may decide. */
  const ticket = (operation: string, fingerprint = '1.x'): string =>
    Buffer.from(JSON.stringify([operation, 'k', fingerprint])).toString('base64url');

  it('declares nothing: a made-up ticket is 404, and the route it names works as it was made', async () => {
    const gate = createGate({ records: memory() });
    const asked = createHttpLayer(gate, { scope, inFlight: '202', statusUrl });
    const route = createHttpLayer(gate, { scope, waitMs: 5 });
    const theirs = operationNameOf('POST', '/pay');
    for (const operation of [theirs, 'http.made-up.00000000', 'order.pay', 'No Name', '']) {
      expect((await asked.status(ticket(operation), 'alice')).status).toBe(404);
    }
    expect((await asked.status(ticket(theirs, 'x\u0000'), 'alice')).status).toBe(404);
    expect(gate.operations).toEqual([]);
    expect((await route.handle(request('k'), async () => ok)).kind).toBe('handler');
  });

  it('speaks of no operation but the route’s own', async () => {
    const gate = createGate({ records: memory() });
    const run = async (): Promise<string> => 'secret';
    const pay = gate.operation({ name: 'order.pay', scope: () => 'alice', key: () => 'k', run });
    await pay({});
    for (const options of [{ scope }, { scope, name: 'http.mine' }]) {
      const layer = createHttpLayer(gate, options);
      expect((await layer.status(ticket('order.pay', fingerprintOf({})), 'alice')).status).toBe(
        404,
      );
    }
  });

  it('gets the first answer also where repeats are refused', async () => {
    const tickets: string[] = [];
    const layer = layerOf({
      scope,
      repeat: 'reject',
      inFlight: '202',
      statusUrl: (one) => `/s/${tickets.push(one)}`,
    });
    const held = door();
    const run = async (): Promise<HandlerResponse> => {
      await held.opened;
      return ok;
    };
    const first = layer.handle(request('k'), run);
    await layer.handle(request('k'), run);
    held.open();
    await first;
    const answer = await layer.status(tickets[0] as string, 'alice');
    expect([answer.status, String(answer.body)]).toEqual([201, 'made']);
  });
});

describe('a store that cannot be reached', () => {
  // A full memory store answers STORE_UNAVAILABLE.
  const run = async (): Promise<HandlerResponse> => ok;

  it('fails closed: 503 with Retry-After, and the handler does not run', async () => {
    const layer = layerOf({ scope }, 1);
    await layer.handle(request('k1'), run);
    const answer = sent(await layer.handle(request('k2'), () => expect.unreachable('ran')));
    expect([answer.status, codeOf(answer)]).toEqual([503, 'STORE_UNAVAILABLE']);
    expect(Number(headerValue(answer.headers, 'retry-after'))).toBeGreaterThanOrEqual(1);
  });

  it('fails open only where the route says so, without tx, and tells', async () => {
    const told: string[] = [];
    const stop = onEvent('idempotency', ({ type }) => told.push(type));
    const layer = layerOf({ scope, failOpen: true }, 1);
    await layer.handle(request('k1'), run);
    const contexts: unknown[] = [];
    const answer = await layer.handle(request('k2'), async (context) => {
      contexts.push(context);
      return ok;
    });
    stop();
    expect([answer.kind, contexts]).toEqual(['handler', [undefined]]);
    expect(told).toContain('unprotected');
  });
});
