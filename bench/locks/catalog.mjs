// Every lock that is measured, by name. The adapters are loaded only when used: the names must be
// known before the peers are installed.

const load = (module, pick) => async () => pick(await module());
const raw = (kind) =>
  load(
    () => import('../peers/raw.mjs'),
    (module) => module.raw(kind),
  );
const turngate = (name) =>
  load(
    () => import('./turngate.mjs'),
    (module) => module[name],
  );
const redlock = (name) =>
  load(
    () => import('../peers/redlock.mjs'),
    (module) => module[name],
  );
const universal = (name) =>
  load(
    () => import('../peers/redlock-universal.mjs'),
    (module) => module[name],
  );

/**
 * `sent`: commands the client itself sends beside EVAL, EVALSHA and SUBSCRIBE; commands inside
 * scripts stand in the same counters and cost no trip. `quick`: also in a quick run.
 */
const entry = (id, label, adapter, more = {}) => ({ id, label, adapter, sent: [], ...more });
const SENT_SET = { sent: ['set'] };
const ours = { ours: true, quick: true };

const CATALOG = [
  entry(
    'idle',
    'nothing renews',
    load(
      () => import('../peers/raw.mjs'),
      ({ idle }) => idle,
    ),
    {
      quick: true,
      bound: true,
    },
  ),
  entry('raw-ioredis', 'raw ioredis 5', raw('ioredis5'), { ...SENT_SET, quick: true, raw: true }),
  entry('raw-ioredis6', 'raw ioredis 6', raw('ioredis6'), { ...SENT_SET, quick: true, raw: true }),
  entry('raw-node-redis', 'raw node-redis', raw('nodeRedis'), {
    ...SENT_SET,
    quick: true,
    raw: true,
  }),
  entry('redlock-4', 'redlock 4', redlock('version4')),
  entry('redlock-5', 'redlock 5 beta', redlock('version5'), { quick: true }),
  entry('sesamecare', 'sesamecare redlock', redlock('sesamecare')),
  entry(
    'redis-semaphore',
    'redis-semaphore',
    load(
      () => import('../peers/redis-semaphore.mjs'),
      ({ mutex }) => mutex,
    ),
    { ...SENT_SET, quick: true },
  ),
  entry('universal', 'redlock-universal', universal('standard'), SENT_SET),
  entry('universal-lean', 'redlock-universal, lean', universal('lean'), SENT_SET),
  entry(
    'async-mutex',
    'async-mutex (one process only)',
    load(
      () => import('../peers/async-mutex.mjs'),
      ({ mutex }) => mutex,
    ),
    { quick: true, local: true },
  ),
  entry('turngate', '**Turngate**, ioredis 5', turngate('ioredis5'), ours),
  entry('turngate-ioredis6', '**Turngate**, ioredis 6', turngate('ioredis6'), ours),
  entry('turngate-node-redis', '**Turngate**, node-redis', turngate('nodeRedis'), ours),
  entry(
    'turngate-no-hand-over',
    'Turngate, ioredis 5, `handOver: false`',
    turngate('ioredis5NoHandOver'),
    ours,
  ),
  entry(
    'turngate-node-redis-no-hand-over',
    'Turngate, node-redis, `handOver: false`',
    turngate('nodeRedisNoHandOver'),
    { ours: true },
  ),
];

/** The entries with these names which this run wants, in the order of the catalogue. */
export function chosenFrom(ids, { only, quick }, always = []) {
  return CATALOG.filter(({ id, quick: isQuick }) => {
    if (!ids.includes(id)) return false;
    if (always.includes(id)) return true;
    return only === undefined || !CATALOG.some((one) => only.includes(one.id))
      ? !quick || isQuick === true
      : only.includes(id);
  });
}

/** The adapter of a name, in whatever process. */
export function adapterOf(id) {
  return CATALOG.find((one) => one.id === id).adapter();
}
