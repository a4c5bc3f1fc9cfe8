// A device that one server at a time may drive (a port, a printer, a file on another host). The lock
// decides whose turn it is; the host of the device checks the fence, because a server that froze in
// the middle of its job does not know that its turn is over.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createGate, isTurngateError } from 'turngate';
import { fenceHeaderName, formatFence, memoryFenceGuard, parseFence } from 'turngate/fence';
import { migrate, postgres, postgresLocks } from 'turngate/postgres';
import { withDatabase } from './support/database.mjs';

/** The host of the device. What it prints is all that matters. */
async function startDevice() {
  const printed = [];
  const guard = memoryFenceGuard(); // After a restart of this host nobody is let in by `check`.
  const server = createServer((request, response) => {
    void (async () => {
      try {
        const { verb, fence } = parseFence(request.headers[fenceHeaderName.toLowerCase()]);
        await guard.run({ resource: 'printer', verb, fence }, async () => {
          if (verb === 'check') printed.push(decodeURIComponent(request.url.slice(1)));
        });
        response.writeHead(204).end();
      } catch (error) {
        const status = isTurngateError(error) ? error.httpStatus : 500;
        response.writeHead(status).end(error.message);
      }
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const send = async (verb, lock, line = '') => {
    const url = `http://127.0.0.1:${server.address().port}/${encodeURIComponent(line)}`;
    const headers = { [fenceHeaderName]: formatFence(verb, lock.fence), connection: 'close' };
    return (await fetch(url, { method: 'POST', headers })).status;
  };
  return { printed, send, close: () => server.close() };
}

await withDatabase(async (pool) => {
  await migrate(pool);
  const { printed, send, close } = await startDevice();
  const open = () => createGate({ records: postgres(pool), locks: postgresLocks(pool) });
  const [here, there] = [open(), open()]; // Two servers.

  // Turns: each page comes out in one piece.
  const print = (gate, page) =>
    gate.lock('printer', { waitMs: 30_000 }, async (lock) => {
      assert.equal(await send('enter', lock), 204); // First, before anything is read from it.
      for (const part of ['top', 'bottom']) {
        assert.equal(await send('check', lock, `${page} ${part}`), 204);
      }
    });
  await Promise.all([print(here, 'page 1'), print(there, 'page 2'), print(here, 'page 3')]);
  const pages = printed.map((line) => line.slice(0, 6));
  for (let i = 0; i < pages.length; i += 2) assert.equal(pages[i], pages[i + 1]);

  // Frozen in the middle of a page, longer than its lease: the next one has its turn.
  const frozen = await here.acquire('printer', { leaseMs: 200, renew: false });
  await send('enter', frozen);
  await send('check', frozen, 'page 4 top');
  const next = await there.acquire('printer', { waitMs: 5_000 });
  assert.equal(await send('enter', next), 204);
  assert.equal(await send('check', frozen, 'page 4 bottom'), 412); // FENCE_STALE
  assert.equal(await send('enter', frozen), 412);
  assert.equal(await send('check', next, 'page 5 top'), 204);
  await next.release();
  assert.deepEqual(printed.slice(-2), ['page 4 top', 'page 5 top']);
  close();
  console.log('pages in one piece; the late command of the frozen server was refused');
});
