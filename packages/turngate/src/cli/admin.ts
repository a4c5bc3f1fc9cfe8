/** `turngate records|staged|locks|audit …`: the operators' verbs from a terminal. */
import { createInterface } from 'node:readline/promises';
import { type Admin, createAdmin, plainJson } from '../admin/index.ts';
import type { AdminCommand } from './admin-command.ts';
import { openClient } from './client.ts';
import { describe } from './migrate.ts';
import { openRedis } from './redis-client.ts';
import { withoutSecrets } from './secrets.ts';
import { factsOf, tableOf } from './table.ts';
import { NotFoundError, UsageError } from './usage-error.ts';

/** @throws UsageError, NotFoundError, or Error without the passwords of the addresses */
export async function runAdmin(command: AdminCommand): Promise<string> {
  if (command.acts && !command.yes) await confirm(command);
  try {
    const answer = await withAdmin(command, (admin) => ask(admin, command));
    return command.json ? plainJson(answer, 2) : inWords(command, answer);
  } catch (error) {
    if (error instanceof NotFoundError) throw error;
    const text = withoutSecrets(describe(error), command.databaseUrl);
    throw new Error(command.redisUrl === undefined ? text : withoutSecrets(text, command.redisUrl));
  }
}

async function withAdmin<T>(command: AdminCommand, body: (admin: Admin) => Promise<T>): Promise<T> {
  const client = await openClient(command.databaseUrl);
  try {
    const redis = command.redisUrl === undefined ? undefined : await openRedis(command.redisUrl);
    try {
      const locks = redis && { locks: redis.locks };
      return await body(createAdmin({ ...client.stores(), ...locks, actor: command.actor }));
    } finally {
      await redis?.end();
    }
  } finally {
    await client.end();
  }
}

/** What was done, to what: for the question and the answer. */
function inShort({ area, verb, id, lockName }: AdminCommand): string {
  if (area === 'locks') return `${area} ${verb} ${lockName}`;
  return id.key === ''
    ? `${area} ${verb}`
    : `${area} ${verb} ${id.operation} ${id.scope} ${id.key}`;
}

async function confirm(command: AdminCommand): Promise<void> {
  if (!process.stdin.isTTY) {
    throw new UsageError(`${command.area} ${command.verb} changes data: add --yes`);
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const said = await terminal.question(`${inShort(command)}: sure? [y/N] `);
  terminal.close();
  if (!/^y(es)?$/i.test(said.trim())) throw new Error('nothing was done');
}

async function ask(admin: Admin, command: AdminCommand): Promise<unknown> {
  const { area, verb, filter } = command;
  if (verb === 'list') return await admin[area as 'records'].list(filter);
  if (verb === 'inspect') return found(command, await look(admin, command));
  if (verb === 'purge') return { purged: await admin.records.purge(command.reason) };
  const answer = await act(admin, command);
  if (answer === 'missing') found(command, undefined);
  if (answer === 'refused') {
    throw new Error(`${inShort(command)}: refused; it has ended, or no such step is unknown`);
  }
  return { answer };
}

async function look(admin: Admin, { area, id, lockName, payload }: AdminCommand): Promise<unknown> {
  if (area === 'locks') return await admin.locks.inspect(lockName);
  return await admin[area as 'records' | 'staged'].inspect(id, { payload });
}

async function act(admin: Admin, command: AdminCommand): Promise<string> {
  const { area, verb, id, lockName, reason, step, happened } = command;
  if (area === 'locks') return await admin.locks.release(lockName, reason);
  if (area === 'records') return await admin.records.release(id, reason);
  if (verb === 'resolve') return await admin.staged.resolve(id, step, happened, reason);
  return await admin.staged[verb as 'resume' | 'release' | 'park'](id, reason);
}

function found<T>(command: AdminCommand, value: T | undefined): T {
  if (value !== undefined) return value;
  throw new NotFoundError(`${inShort(command)}: there is none`);
}

type Facts = Readonly<Record<string, unknown>>;

function inWords({ verb }: AdminCommand, answer: unknown): string {
  const facts = answer as Facts;
  if (verb === 'list') {
    const rows = (facts['records'] ?? facts['lines']) as readonly Facts[];
    const table = tableOf(rows.map(rowOf));
    const cursor = facts['cursor'];
    return cursor === undefined ? table : `${table}\nmore: --cursor ${cursor}`;
  }
  if (verb !== 'inspect')
    return Object.entries(facts)
      .map(([name, value]) => `${name === 'answer' ? '' : `${name} `}${value}`)
      .join('\n');
  const steps = facts['steps'] as readonly Facts[] | undefined;
  if (steps === undefined) return factsOf(cells(facts));
  const record = factsOf(cells(facts['record'] as Facts));
  return `${record}\n\nsteps\n${tableOf(steps.map(cells))}`;
}

/** The columns of a list: what tells rows apart, not everything. */
function rowOf(row: Facts): Record<string, string> {
  const { fingerprint: _f, owner: _o, promised: _p, ...rest } = row;
  return cells(rest);
}

function cells(row: Facts): Record<string, string> {
  const out: Record<string, string> = {};
  for (const [name, value] of Object.entries(row)) {
    if (name === 'id' && typeof value === 'object') Object.assign(out, value);
    else if (value !== undefined) out[name] = cell(name, value);
    else out[name] = '';
  }
  return out;
}

function cell(name: string, value: unknown): string {
  if (name.endsWith('AtMs') || name === 'atMs') return new Date(Number(value)).toISOString();
  return typeof value === 'string' ? value : plainJson(value);
}
