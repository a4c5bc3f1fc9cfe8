// Each peer behind one Express 5 application, set up as its own page says. A handler is a function of
// {req, key, user, text} that gives {status, headers, body}; it may throw.
import { once } from 'node:events';
import express from 'express';
import { createGate } from 'turngate';
import { idempotency } from 'turngate/express';
import { memory } from 'turngate/memory';

/** Starts an application; `mount(app, path, handler)` protects one route. */
export async function serve(routes, mount) {
  const app = express();
  app.set('env', 'test');
  app.use(express.json({ type: () => true, strict: false }));
  for (const route of routes) mount(app, route);
  app.use((error, _req, res, _next) => {
    if (!res.headersSent) res.status(error.status ?? 500).json({ message: error.message });
  });
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Sends what a handler made, the way a handler would. */
export function reply(res, made) {
  res.status(made.status ?? 200);
  for (const [name, value] of Object.entries(made.headers ?? {})) res.set(name, value);
  if (made.body === undefined) res.end();
  else res.send(made.body);
}

const callOf = (req) => ({ req, user: req.get('x-user'), tx: req.turngate?.tx });
const verb = (route) => route.method ?? 'post';

const turngate = {
  name: 'turngate',
  packages: [],
  setUp() {
    const gate = createGate({ records: memory() });
    return (app, route) => {
      const guard = idempotency(gate, { scope: (req) => req.get('x-user') });
      app[verb(route)](route.path, guard, async (req, res) =>
        reply(res, await route.handle(callOf(req))),
      );
    };
  },
};

const expressIdempotency = {
  name: 'express-idempotency',
  packages: ['express-idempotency'],
  async setUp(load) {
    const { idempotency: guard, getSharedIdempotencyService } = await load('express-idempotency');
    return (app, route) => {
      app[verb(route)](route.path, guard(), async (req, res, next) => {
        const service = getSharedIdempotencyService();
        if (service.isHit(req)) return;
        try {
          reply(res, await route.handle(callOf(req)));
        } catch (error) {
          service.reportError(req);
          next(error);
        }
      });
    };
  },
};

// Its Express middleware is not in the registry: the core, with the few lines its page shows.
const nodeIdempotency = {
  name: '@node-idempotency/core',
  packages: ['@node-idempotency/core', '@node-idempotency/storage-adapter-memory'],
  note: 'with memory storage and the Express lines of its page; its own Express package is not in the registry',
  async setUp(load) {
    const { Idempotency } = await load('@node-idempotency/core');
    const { MemoryStorageAdapter } = await load('@node-idempotency/storage-adapter-memory');
    const store = new Idempotency(new MemoryStorageAdapter(), { enforceIdempotency: true });
    const statuses = { IDEMPOTENCY_FINGERPRINT_MISSMATCH: 422, REQUEST_IN_PROGRESS: 409 };
    return (app, route) => {
      app[verb(route)](route.path, async (req, res, next) => {
        const seen = { method: req.method, headers: req.headers, body: req.body, path: req.path };
        try {
          const stored = await store.onRequest(seen);
          if (stored?.error !== undefined) {
            res.status(stored.additional.status).json({ message: stored.error.message });
            return;
          }
          if (stored !== undefined) {
            res.status(stored.additional.status).send(stored.body);
            return;
          }
        } catch (error) {
          res.status(statuses[error.code] ?? 400).json({ message: error.message });
          return;
        }
        try {
          const made = await route.handle(callOf(req));
          const additional = { status: made.status ?? 200 };
          await store.onResponse(seen, { body: made.body, additional });
          reply(res, made);
        } catch (error) {
          const { message } = error;
          await store.onResponse(seen, { error: { message }, additional: { status: 500 } });
          next(error);
        }
      });
    };
  },
};

const powertools = {
  name: '@aws-lambda-powertools/idempotency',
  packages: ['@aws-lambda-powertools/idempotency'],
  note: 'a function wrapper, not HTTP: the handler’s answer is its value; cache layer over an in-process client with SET NX, 30 s of Lambda time left; payload validation is off, because with the cache layer it refused every identical repeat',
  async setUp(load) {
    const { IdempotencyConfig, makeIdempotent } = await load('@aws-lambda-powertools/idempotency');
    const { CachePersistenceLayer } = await load('@aws-lambda-powertools/idempotency/cache');
    const statuses = { IdempotencyAlreadyInProgressError: 409, IdempotencyValidationError: 422 };
    return (app, route) => {
      const config = new IdempotencyConfig({
        eventKeyJmesPath: 'key',
        throwOnNoIdempotencyKey: true,
      });
      config.registerLambdaContext({ getRemainingTimeInMillis: () => 30_000 });
      const persistenceStore = new CachePersistenceLayer({ client: cacheClient() });
      const run = makeIdempotent(({ call }) => route.handle(call), {
        persistenceStore,
        config,
        keyPrefix: route.path,
      });
      app[verb(route)](route.path, async (req, res, next) => {
        try {
          const event = { key: req.get('idempotency-key'), body: req.body };
          // What the handler needs besides the event must not be hashed or stored.
          Object.defineProperty(event, 'call', { value: callOf(req), enumerable: false });
          reply(res, await run(event));
        } catch (error) {
          const status = statuses[error.name];
          if (status === undefined) next(error);
          else res.status(status).json({ message: error.message });
        }
      });
    };
  },
};

/** What its cache layer asks of Redis or Valkey. */
function cacheClient() {
  const values = new Map();
  return {
    get: async (name) => values.get(name) ?? null,
    async set(name, value, options = {}) {
      if (options.NX && values.has(name)) return null;
      values.set(name, value);
      return 'OK';
    },
    del: async (names) => names.filter((name) => values.delete(name)).length,
  };
}

/** Could not be had so far, under the names its page tells to install. */
const absent = (name, packages) => ({ name, packages, setUp: undefined });

export const peers = [
  turngate,
  expressIdempotency,
  nodeIdempotency,
  powertools,
  absent('hono-idempotency', ['hono-idempotency']),
  absent('idempot-js', ['@idempot/express-middleware', '@idempot/core']),
];
