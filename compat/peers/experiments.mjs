// The same experiments for every peer. Each returns undefined when the law holds, or what happened.
import { request } from 'node:http';

/** Sends one request; 10 seconds without an answer is an answer too. */
export function send(
  url,
  { method = 'POST', user = 'alice', key, keys, body = '{"a":1}', ms } = {},
) {
  const text = method === 'GET' ? '' : body;
  const headers = { 'x-user': user, 'content-length': Buffer.byteLength(text) };
  if (text !== '') headers['content-type'] = 'application/json';
  if (key !== undefined) headers['idempotency-key'] = key;
  if (keys !== undefined) headers['idempotency-key'] = keys;
  return new Promise((resolve) => {
    const signal = AbortSignal.timeout(ms ?? 10_000);
    const req = request(url, { method, headers, agent: false, signal }, (res) => {
      const chunks = [];
      res.on('data', (chunk) => chunks.push(chunk));
      res.on('error', () => resolve(none));
      res.on('end', () => {
        const bytes = Buffer.concat(chunks);
        resolve({ status: res.statusCode, headers: res.headers, bytes, text: String(bytes) });
      });
    });
    req.on('error', () => resolve(none));
    req.end(text);
  });
}

const none = { status: 0, headers: {}, bytes: Buffer.alloc(0), text: '(no answer)' };

/** A handler that counts and answers. */
function counter(make) {
  const handle = async (call) => {
    handle.runs++;
    return await make(call, handle.runs);
  };
  handle.runs = 0;
  return handle;
}

/** First and repeat of one answer. */
const replay = (made, differs) => async (start) => {
  const handle = counter(() => made);
  const { url } = await start({ path: '/p', handle });
  const first = await send(`${url}/p`, { key: 'key-1' });
  const repeat = await send(`${url}/p`, { key: 'key-1' });
  if (handle.runs !== 1) return `ran ${handle.runs} times`;
  if (first.status !== (made.status ?? 200)) return `first was ${first.status}`;
  if (repeat.status !== first.status) return `repeat was ${repeat.status}`;
  if (!repeat.bytes.equals(first.bytes)) return 'other bytes';
  return differs?.(first, repeat);
};

const held = () => {
  let open;
  const opened = new Promise((resolve) => {
    open = resolve;
  });
  return { opened, open };
};

async function until(holds) {
  for (let i = 0; i < 400 && !holds(); i++) await new Promise((resolve) => setTimeout(resolve, 5));
}

const json = { 'content-type': 'application/json' };
const marker = /replay|idempot/i;

export const experiments = [
  {
    law: 'status, bytes and Location are repeated',
    run: replay(
      { status: 201, headers: { ...json, location: '/o/1' }, body: '{"b":1,  "a":2}' },
      (_, b) => (b.headers.location === '/o/1' ? undefined : 'Location lost'),
    ),
  },
  {
    law: 'a repeat is marked',
    run: replay({ body: 'x' }, (a, b) => {
      const marked = Object.keys(b.headers).some(
        (name) => marker.test(name) && !(name in a.headers),
      );
      return marked ? undefined : 'no marker';
    }),
  },
  { law: '204 runs once and stays 204', run: replay({ status: 204 }) },
  { law: '303 runs once', run: replay({ status: 303, headers: { location: '/x' } }) },
  {
    law: 'binary bytes are equal',
    run: replay({
      headers: { 'content-type': 'application/octet-stream' },
      body: Buffer.from([0, 255, 254, 1]),
    }),
  },
  {
    law: 'text/csv keeps its type',
    run: replay({ headers: { 'content-type': 'text/csv' }, body: 'a,b' }, (_, b) =>
      /^text\/csv/.test(b.headers['content-type'] ?? '') ? undefined : b.headers['content-type'],
    ),
  },
  { law: 'a business 409 is stored', run: replay({ status: 409, body: 'sold out' }) },
  { law: 'a 1 MB answer runs once', run: largeOnce },
  {
    law: 'Set-Cookie is not repeated',
    run: replay({ headers: { 'set-cookie': 'sid=1' }, body: 'x' }, (_, b) =>
      b.headers['set-cookie'] === undefined ? undefined : 'cookie repeated',
    ),
  },
  { law: '20 at once run once', run: race },
  { law: 'a repeat in flight gets the first answer', run: inFlight },
  { law: 'another body ("1" for 1) is refused, the record stays', run: otherBody },
  { law: 'another body is refused as such in flight', run: otherBodyInFlight },
  { law: 'another user has a run of their own', run: otherUser },
  { law: 'the key on another route is not lost', run: otherRoute },
  { law: 'a 503 is not stored', run: flaky(() => ({ status: 503, body: 'later' })) },
  {
    law: 'a thrown error frees the key',
    run: flaky(() => {
      throw new Error('not now');
    }),
  },
  { law: 'a client that went away: run once, its answer kept', run: wentAway },
  { law: 'a key sent twice is refused', run: sentTwice },
  { law: 'quoted and bare are one key', run: quoted },
  { law: 'a key on GET is ignored', run: onGet },
  { law: 'the handler gets the transaction the record commits in', run: transaction },
];

async function largeOnce(start) {
  const handle = counter(() => ({ body: 'x'.repeat(1_048_576) }));
  const { url } = await start({ path: '/p', handle });
  await send(`${url}/p`, { key: 'key-1' });
  const repeat = await send(`${url}/p`, { key: 'key-1' });
  if (handle.runs !== 1) return `ran ${handle.runs} times`;
  return repeat.status === 0 ? 'no answer' : undefined;
}

async function race(start) {
  const handle = counter(async () => {
    await new Promise((resolve) => setTimeout(resolve, 50));
    return { body: 'x' };
  });
  const { url } = await start({ path: '/p', handle });
  await Promise.all(Array.from({ length: 20 }, () => send(`${url}/p`, { key: 'key-1' })));
  return handle.runs === 1 ? undefined : `ran ${handle.runs} times`;
}

async function inFlight(start) {
  const gate = held();
  const handle = counter(async () => {
    await gate.opened;
    return { status: 201, body: 'first' };
  });
  const { url } = await start({ path: '/p', handle });
  const first = send(`${url}/p`, { key: 'key-1' });
  await until(() => handle.runs > 0);
  const second = send(`${url}/p`, { key: 'key-1' });
  const early = await Promise.race([second, new Promise((r) => setTimeout(r, 200))]);
  gate.open();
  await first;
  const { status, text } = await second;
  if (handle.runs !== 1) return `ran ${handle.runs} times`;
  if (status === 201 && text === 'first') return undefined;
  const retry = early?.headers['retry-after'] === undefined ? ', no Retry-After' : '';
  return `${status}${retry}`;
}

async function otherBody(start) {
  const handle = counter(() => ({ status: 201, body: 'first' }));
  const { url } = await start({ path: '/p', handle });
  await send(`${url}/p`, { key: 'key-1', body: '{"a":1}' });
  const other = await send(`${url}/p`, { key: 'key-1', body: '{"a":"1"}' });
  const repeat = await send(`${url}/p`, { key: 'key-1', body: '{"a":1}' });
  if (handle.runs !== 1) return `ran ${handle.runs} times`;
  if (other.status < 400) return `other body got ${other.status}`;
  return repeat.status === 201 ? undefined : `the original then got ${repeat.status}`;
}

async function otherBodyInFlight(start) {
  const gate = held();
  const handle = counter(async () => {
    await gate.opened;
    return { status: 201, body: 'first' };
  });
  const { url } = await start({ path: '/p', handle });
  const first = send(`${url}/p`, { key: 'key-1', body: '{"a":1}' });
  await until(() => handle.runs > 0);
  const other = await send(`${url}/p`, { key: 'key-1', body: '{"a":2}', ms: 1_000 });
  gate.open();
  await first;
  const told = [400, 417, 422].includes(other.status);
  return told ? undefined : other.status === 0 ? 'no answer' : `got ${other.status}`;
}

async function otherUser(start) {
  const handle = counter(({ user }) => ({ body: `for ${user}` }));
  const { url } = await start({ path: '/p', handle });
  await send(`${url}/p`, { key: 'key-1', user: 'alice' });
  const bob = await send(`${url}/p`, { key: 'key-1', user: 'bob' });
  return bob.text === 'for bob' ? undefined : `bob got “${bob.text}”`;
}

async function otherRoute(start) {
  const a = counter(() => ({ body: 'a' }));
  const b = counter(() => ({ body: 'b' }));
  const { url } = await start({ path: '/a', handle: a }, { path: '/b', handle: b });
  await send(`${url}/a`, { key: 'key-1' });
  const second = await send(`${url}/b`, { key: 'key-1' });
  return b.runs === 1 || second.status >= 400
    ? undefined
    : `got “${second.text}” of the other route`;
}

function flaky(fail) {
  return async (start) => {
    const handle = counter((_, run) => (run === 1 ? fail() : { status: 201, body: 'done' }));
    const { url } = await start({ path: '/p', handle });
    await send(`${url}/p`, { key: 'key-1' });
    const retry = await send(`${url}/p`, { key: 'key-1' });
    return retry.status === 201 ? undefined : `retry got ${retry.status || 'no answer'}`;
  };
}

async function wentAway(start) {
  const gate = held();
  const handle = counter(async () => {
    await gate.opened;
    return { status: 201, body: 'done' };
  });
  const { url } = await start({ path: '/p', handle });
  await send(`${url}/p`, { key: 'key-1', ms: 100 });
  gate.open();
  await new Promise((resolve) => setTimeout(resolve, 100));
  const retry = await send(`${url}/p`, { key: 'key-1' });
  if (handle.runs !== 1) return `ran ${handle.runs} times`;
  return retry.status === 201 ? undefined : `retry got ${retry.status || 'no answer'}`;
}

async function sentTwice(start) {
  const handle = counter(() => ({ body: 'x' }));
  const { url } = await start({ path: '/p', handle });
  await send(`${url}/p`, { keys: ['key-1', 'key-1'] });
  await send(`${url}/p`, { key: 'key-1' });
  return handle.runs === 1 ? undefined : `ran ${handle.runs} times`;
}

async function quoted(start) {
  const handle = counter(() => ({ body: 'x' }));
  const { url } = await start({ path: '/p', handle });
  await send(`${url}/p`, { key: '"key-1"' });
  await send(`${url}/p`, { key: 'key-1' });
  return handle.runs === 1 ? undefined : `ran ${handle.runs} times`;
}

async function onGet(start) {
  const handle = counter((_, run) => ({ body: String(run) }));
  const { url } = await start({ path: '/p', method: 'get', handle });
  await send(`${url}/p`, { method: 'GET', key: 'key-1' });
  const second = await send(`${url}/p`, { method: 'GET', key: 'key-1' });
  return second.text === '2' ? undefined : `second read got “${second.text.slice(0, 20)}”`;
}

async function transaction(start) {
  let given;
  const handle = counter(({ tx }) => {
    given = tx;
    return { body: 'x' };
  });
  const { url } = await start({ path: '/p', handle });
  await send(`${url}/p`, { key: 'key-1' });
  return given === undefined ? 'none' : undefined;
}
