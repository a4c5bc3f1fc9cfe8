/** Participants: in this process behind a barrier, or in another one over HTTP. */
import type { SqlDatabase, SqlSession } from '../contract/sql-session.ts';
import { isTurngateError, refuse, TurngateError } from '../core/errors.ts';
import { integerOption, knownOptions, optionError } from '../core/option.ts';
import { systemRuntime } from '../runtime/runtime.ts';
import { waitFor } from '../runtime/wait.ts';
import type { Barrier } from './barrier.ts';
import type { BranchOp } from './branch.ts';
import { withoutConflicts } from './conflicts.ts';
import type { BranchContext, Participant } from './tcc.ts';

/** What a participant does in its own transaction. */
export interface BranchHandlers<Payload> {
  /** May `throw refuse(…)`: then nothing is left of it. */
  readonly try: (sql: SqlSession, payload: Payload, context: BranchContext) => Promise<unknown>;
  readonly confirm: (sql: SqlSession, payload: Payload, context: BranchContext) => Promise<unknown>;
  readonly cancel: (sql: SqlSession, payload: Payload, context: BranchContext) => Promise<unknown>;
}

/**
 * A participant over a database: each verb is one transaction with its barrier row. One that the database
 * rolls back (a deadlock) is run again here, handler included: on MySQL that happens whenever several
 * repeats wait for a first that fails.
 */
export function localParticipant<Payload>(
  database: SqlDatabase,
  barrier: Barrier,
  handlers: BranchHandlers<Payload>,
): Participant<Payload> {
  const verb =
    (op: BranchOp) =>
    async (payload: Payload, context: BranchContext): Promise<unknown> => {
      const { gid, branch } = context;
      const own = { gid, branch, op };
      const call = op === 'try' ? { ...own, payload } : own;
      const result = await withoutConflicts(() =>
        barrier.transact(database, call, (sql) => handlers[op](sql, payload, context)),
      );
      return result.value;
    };
  return asParticipant(verb);
}

/** The three verbs; a try that comes too late is a "no" for the coordinator, not one to repeat. */
export function asParticipant<Payload>(
  verb: (op: BranchOp) => Participant<Payload>['try'],
): Participant<Payload> {
  const attempt = verb('try');
  return {
    async try(payload, context) {
      try {
        return await attempt(payload, context);
      } catch (error) {
        if (isTurngateError(error, 'BRANCH_REFUSED')) throw refuse(error.code, error.message);
        throw error;
      }
    },
    confirm: verb('confirm'),
    cancel: verb('cancel'),
  };
}

const headerNames = { gid: 'turngate-gid', branch: 'turngate-branch', op: 'turngate-op' } as const;

/** Options of a participant over HTTP. */
export interface HttpParticipantOptions {
  readonly url: string;
  /** @unit milliseconds, integer, 10 to 600_000; default 10_000 */
  readonly timeoutMs?: number;
  /** Sent with every call, for authentication. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Default: the global one. */
  readonly fetch?: typeof fetch;
}

/**
 * A participant in another service: POST with `Turngate-Gid`, `Turngate-Branch`, `Turngate-Op` and the
 * payload as JSON. 2xx is done, 409 and 422 are a refusal, everything else is tried again.
 *
 * @throws OPTION_INVALID before any I/O
 */
export function httpParticipant<Payload>(options: HttpParticipantOptions): Participant<Payload> {
  knownOptions('http participant', options, ['url', 'timeoutMs', 'headers', 'fetch']);
  const { url, headers = {}, fetch: send = fetch } = options;
  if (!URL.canParse(url)) throw optionError('url', 'an absolute URL', url);
  const range = { min: 10, max: 600_000, fallback: 10_000 };
  const timeoutMs = integerOption('timeoutMs', options.timeoutMs, range);
  const verb =
    (op: BranchOp) =>
    async (payload: Payload, { gid, branch, signal }: BranchContext): Promise<unknown> => {
      const stop = new AbortController();
      const call = send(url, {
        method: 'POST',
        headers: {
          ...headers,
          'content-type': 'application/json',
          [headerNames.gid]: gid,
          [headerNames.branch]: branch,
          [headerNames.op]: op,
        },
        body: JSON.stringify(payload ?? null),
        signal: AbortSignal.any([signal, stop.signal]),
      }).then(async (answer) => ({ answer, text: await answer.text() }));
      const { answer: response, text } = await waitFor(systemRuntime, call, {
        limitMs: timeoutMs,
        onCut: () => {
          const error = new Error(`${op} of branch ${branch}: no answer within ${timeoutMs} ms`);
          stop.abort(error);
          return error;
        },
      });
      if (response.ok) return text === '' ? undefined : JSON.parse(text);
      if (op === 'try' && (response.status === 409 || response.status === 422)) {
        throw refuse('BRANCH_REFUSED', `branch ${branch} refused (${response.status})`);
      }
      throw new Error(`${op} of branch ${branch} was answered ${response.status}`);
    };
  return { try: verb('try'), confirm: verb('confirm'), cancel: verb('cancel') };
}

/** A request as any framework can give it. */
export interface ParticipantRequest {
  /** Header names in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: string;
}

/** An answer any framework can send. */
export interface ParticipantResponse {
  readonly status: number;
  /** JSON text. */
  readonly body: string;
}

/** The receiving side of {@link httpParticipant}: plain values, for any framework. */
export function participantEndpoint(
  participant: Participant<unknown>,
): (request: ParticipantRequest, signal?: AbortSignal) => Promise<ParticipantResponse> {
  return async ({ headers, body }, signal = new AbortController().signal) => {
    const word = (name: keyof typeof headerNames): string => {
      const value = headers[headerNames[name]];
      return typeof value === 'string' ? value : '';
    };
    const op = word('op');
    if (op !== 'try' && op !== 'confirm' && op !== 'cancel') {
      return answer(400, {
        code: 'VALIDATION_FAILED',
        detail: 'Turngate-Op: try, confirm or cancel',
      });
    }
    let payload: unknown;
    try {
      payload = JSON.parse(body);
    } catch {
      return answer(400, { code: 'VALIDATION_FAILED', detail: 'the body is not JSON' });
    }
    try {
      const context = { gid: word('gid'), branch: word('branch'), signal };
      return answer(200, (await participant[op](payload, context)) ?? null);
    } catch (error) {
      return failure(error);
    }
  };
}

function failure(error: unknown): ParticipantResponse {
  if (!(error instanceof TurngateError) && !isTurngateError(error)) {
    return answer(500, { code: 'INTERNAL_ERROR' });
  }
  if (error.code === 'REFUSED') return answer(409, { code: error.refusal?.code });
  // Not tried yet is no refusal: the coordinator tries the confirm again.
  const status = error.code === 'BRANCH_NOT_TRIED' ? 425 : error.httpStatus;
  const known = error.code === 'OPTION_INVALID' ? 400 : status;
  return answer(known, { code: error.code, detail: error.message });
}

function answer(status: number, value: unknown): ParticipantResponse {
  return { status, body: JSON.stringify(value) };
}
