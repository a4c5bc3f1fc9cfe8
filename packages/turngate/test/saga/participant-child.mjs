// A participant behind its barrier, over HTTP, for tests that kill it. Says its port, then serves.
// argv: dialect ("postgres", "mysql"), database URL, isolation level; for the external mode also the URL
// of its provider and the barrier's options as JSON. Of its bodies 15 in 100 fail. In local mode each holds
// its transaction open for a moment, so that a kill meets it there.
import { createServer } from 'node:http';
import { createPool } from 'mysql2/promise';
import pg from 'pg';
import {
  createBarrier,
  createExternalBarrier,
  externalParticipant,
  localParticipant,
  participantEndpoint,
} from '../../dist/saga/index.js';
import { mysqlDatabase } from '../../dist/stores/mysql/index.js';
import { postgresDatabase } from '../../dist/stores/postgres/index.js';

const [dialect, url, isolation, providerUrl, timing] = process.argv.slice(2);

function openPostgres() {
  const pool = new pg.Pool({ connectionString: url, max: 8 });
  pool.on('error', () => undefined);
  const begin = [`BEGIN ISOLATION LEVEL ${isolation}`];
  return { database: postgresDatabase(pool), connect: () => pool.connect(), begin };
}

function openMysql() {
  const pool = createPool({ uri: url, connectionLimit: 8 });
  const begin = [`SET TRANSACTION ISOLATION LEVEL ${isolation}`, 'START TRANSACTION'];
  return { database: mysqlDatabase(pool), connect: () => pool.getConnection(), begin };
}

const { database, connect, begin } = dialect === 'postgres' ? openPostgres() : openMysql();

/** Turngate's own transactions are always at READ COMMITTED; here the level is the test's. */
async function transaction(work, { first = () => [], last = () => [] } = {}) {
  const client = await connect();
  try {
    for (const text of begin) await client.query(text);
    const sql = database.session(client);
    const steps = first(sql);
    const answers = steps.length === 0 ? [] : await sql.together(steps);
    const value = await work(sql, client, answers);
    const ends = last(value);
    if (ends.length > 0) await sql.together(ends);
    await client.query('COMMIT');
    return value;
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  } finally {
    client.release();
  }
}

const ownDatabase = { ...database, transaction };

function sometimesFail() {
  if (Math.random() < 0.15) throw new Error('the body fails');
}

function openLocal() {
  const body =
    (op) =>
    async (sql, _payload, { gid }) => {
      await sql.query('INSERT INTO effect (line) VALUES ($1)', [`${gid} ${op}`]);
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 4));
      sometimesFail();
      return op;
    };
  const bodies = { try: body('try'), confirm: body('confirm'), cancel: body('cancel') };
  return localParticipant(ownDatabase, createBarrier(), bodies);
}

function openExternal() {
  const barrier = createExternalBarrier(ownDatabase, JSON.parse(timing));
  async function send(op, { gid, providerKey, tryKey, signal }) {
    const body = JSON.stringify({ op, gid, providerKey, tryKey });
    await (await fetch(providerUrl, { method: 'POST', body, signal })).text();
    sometimesFail();
    return op;
  }
  const body = (op) => (_payload, context) => send(op, context);
  barrier.startRecancels({ b: (context) => send('cancel', context) }, { everyMs: 100 });
  const bodies = { try: body('try'), confirm: body('confirm'), cancel: body('cancel') };
  return externalParticipant(barrier, bodies);
}

const endpoint = participantEndpoint(providerUrl === undefined ? openLocal() : openExternal());
const server = createServer((request, response) => {
  let text = '';
  request.on('data', (chunk) => {
    text += chunk;
  });
  request.on('end', () => {
    void endpoint({ headers: request.headers, body: text }).then((answer) => {
      response.writeHead(answer.status, { 'content-type': 'application/json' });
      response.end(answer.body);
    });
  });
});
server.listen(0, '127.0.0.1', () => process.stdout.write(`port ${server.address().port}\n`));
