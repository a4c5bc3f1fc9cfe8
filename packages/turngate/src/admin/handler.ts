/** The operators' verbs over HTTP, for a console: JSON in, JSON out, mounted wherever you like. */
import { isTurngateError, show, TurngateError } from '../core/errors.ts';
import { functionOption, knownOptions, optionError } from '../core/option.ts';
import type { RecordId } from '../core/record-id.ts';
import type { Admin } from './admin.ts';
import { plainJson } from './plain.ts';

/** Options of {@link adminHandler}. */
export interface AdminHandlerOptions {
  /**
   * Answer the acts too, not only the questions.
   *
   * @default false
   */
  readonly allowWrites?: boolean;
  /**
   * Show inputs and results when `payload=1` is asked for.
   *
   * @default false
   */
  readonly allowPayload?: boolean;
  /** Who acts, from the request your own middleware has authenticated. Default: the admin's actor. */
  readonly actor?: (request: Request) => string;
}

type Query = Readonly<Record<string, string>>;
type Body = Readonly<Record<string, unknown>>;

const bodyBytesMax = 65_536;

/**
 * A plain `Request` → `Response` function. By the last two parts of the path:
 *
 * - `GET records/list`, `records/inspect`, `staged/list`, `staged/inspect`, `locks/inspect`,
 *   `audit/list`, filters in the query;
 * - `POST records/release`, `staged/resume|release|resolve|park`, `locks/release` with a JSON object:
 *   `operation`, `scope`, `key` (or `name`), `reason`; `resolve` also `step` and `happened`, and
 *   `result` where it happened.
 *
 * It authenticates nobody: put it behind something that does. Acts need `allowWrites` and a JSON
 * content type, which a form of another site cannot send.
 *
 * @throws OPTION_INVALID before any I/O
 */
export function adminHandler(
  admin: Admin,
  options: AdminHandlerOptions = {},
): (request: Request) => Promise<Response> {
  knownOptions('adminHandler()', options, ['allowWrites', 'allowPayload', 'actor']);
  if (options.actor !== undefined) functionOption('actor', options.actor);
  const { allowWrites = false, allowPayload = false, actor } = options;
  return async (request) => {
    const { pathname, searchParams } = new URL(request.url);
    const verb = pathname.split('/').slice(-2).join('/');
    try {
      if (request.method === 'GET' && Object.hasOwn(questions, verb)) {
        const query = Object.fromEntries(searchParams);
        if (query['payload'] === '1' && !allowPayload)
          return problem(403, 'payloads are not shown');
        const answer = await questions[verb as keyof typeof questions](admin, query);
        return answer === undefined ? problem(404, 'there is none') : json(200, answer);
      }
      if (request.method === 'POST' && Object.hasOwn(acts, verb)) {
        if (!allowWrites) return problem(403, 'this handler is read-only');
        const body = await bodyOf(request);
        const acting = actor === undefined ? admin : admin.as(actor(request));
        const answer = await acts[verb as keyof typeof acts](acting, body);
        return json(answer === 'done' ? 200 : answer === 'missing' ? 404 : 409, { answer });
      }
      return problem(404, 'there is no such verb');
    } catch (error) {
      // Whatever is wrong with an option here, the caller sent it.
      if (isTurngateError(error, 'OPTION_INVALID')) return problem(400, error.message, error.code);
      if (isTurngateError(error)) return problem(error.httpStatus, error.message, error.code);
      throw error;
    }
  };
}

const questions = {
  'records/list': (admin: Admin, query: Query) => admin.records.list(filterOf(query) as never),
  'records/inspect': (admin: Admin, query: Query) =>
    admin.records.inspect(idOf(query), { payload: query['payload'] === '1' }),
  'staged/list': (admin: Admin, query: Query) => admin.staged.list(filterOf(query) as never),
  'staged/inspect': (admin: Admin, query: Query) =>
    admin.staged.inspect(idOf(query), { payload: query['payload'] === '1' }),
  'locks/inspect': (admin: Admin, query: Query) => admin.locks.inspect(textOf(query, 'name')),
  'audit/list': (admin: Admin, query: Query) => admin.audit.list(filterOf(query) as never),
} as const;

const acts = {
  'records/release': (admin: Admin, body: Body) =>
    admin.records.release(idOf(body), textOf(body, 'reason')),
  'staged/resume': (admin: Admin, body: Body) =>
    admin.staged.resume(idOf(body), textOf(body, 'reason')),
  'staged/release': (admin: Admin, body: Body) =>
    admin.staged.release(idOf(body), textOf(body, 'reason')),
  'staged/park': (admin: Admin, body: Body) =>
    admin.staged.park(idOf(body), textOf(body, 'reason')),
  'staged/resolve': (admin: Admin, body: Body) => {
    const { happened, result } = body;
    if (typeof happened !== 'boolean') throw optionError('happened', 'true or false', happened);
    const what = happened ? { happened, result } : { happened };
    return admin.staged.resolve(idOf(body), textOf(body, 'step'), what, textOf(body, 'reason'));
  },
  'locks/release': (admin: Admin, body: Body) =>
    admin.locks.release(textOf(body, 'name'), textOf(body, 'reason')),
} as const;

const words = ['operation', 'scope', 'key', 'state', 'actor', 'act', 'after'];
const numbers = ['limit', 'sinceMs', 'beforeMs'];

/** A filter that is not known is refused: it would silently list everything. */
function filterOf(query: Query): Record<string, string | number> {
  knownOptions('query', query, [...words, ...numbers]);
  const entries = Object.entries(query).map(([name, text]) => [
    name,
    numbers.includes(name) ? Number(text === '' ? Number.NaN : text) : text,
  ]);
  return Object.fromEntries(entries);
}

function idOf(given: Body): RecordId {
  return {
    operation: textOf(given, 'operation'),
    scope: textOf(given, 'scope'),
    key: textOf(given, 'key'),
  };
}

function textOf(given: Body, name: string): string {
  const value = given[name];
  if (typeof value !== 'string' || value === '') throw optionError(name, 'a text', value);
  return value;
}

async function bodyOf(request: Request): Promise<Body> {
  const type = request.headers.get('content-type') ?? '';
  if (!/^application\/json\b/i.test(type)) {
    throw optionError('content-type', 'application/json', type);
  }
  const text = await request.text();
  if (text.length > bodyBytesMax) {
    throw new TurngateError('PAYLOAD_TOO_LARGE', `the body may have ${bodyBytesMax} characters`);
  }
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw optionError('body', 'JSON', text);
  }
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) return body as Body;
  throw optionError('body', `a JSON object, not ${show(body)}`, body);
}

function problem(status: number, detail: string, code?: string): Response {
  return json(status, { status, detail, ...(code && { code }) }, 'application/problem+json');
}

function json(status: number, value: unknown, type = 'application/json'): Response {
  const headers = { 'content-type': type, 'cache-control': 'no-store' };
  return new Response(plainJson(value), { status, headers });
}
