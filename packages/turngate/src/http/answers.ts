/** Answers of the layer's own: problems and repeats. None of them is ever stored. */
import { TurngateError } from '../core/errors.ts';
import type { Outcome } from '../idempotency/outcome.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { type HttpResponse, headerLines, headerValue } from './message.ts';
import type { HttpPolicy } from './options.ts';
import { problemOf } from './problem.ts';
import { replayHeaders } from './replay-headers.ts';
import type { StoredResponse } from './stored-response.ts';

/** Response header that tells a client what became of the effect. */
export const outcomeHeader = 'Idempotency-Outcome';

/** `refused`: a stored 4xx, so a final "no". */
export type OutcomeWord = 'applied' | 'refused' | 'not-applied' | 'unknown';

/** What a stored answer says about its effect. */
export function storedOutcome(status: number): OutcomeWord {
  return status < 400 ? 'applied' : 'refused';
}

/** A Turngate error as a response; undefined for any other error. */
export function problemResponse<Native>(
  policy: Pick<HttpPolicy<Native>, 'mapProblem'>,
  runtime: Runtime,
  error: unknown,
): HttpResponse | undefined {
  const plain = problemOf(error);
  if (plain === undefined) return undefined;
  const known = error as TurngateError;
  const { status, headers, body } = policy.mapProblem?.(plain) ?? plain;
  const retryAfter = headers['Retry-After'];
  const { firstProcessedAt = new Date(0), replayed } = known;
  const outcome = known.code === 'REFUSED' ? 'refused' : known.outcome;
  const all = {
    ...headers,
    ...(retryAfter === undefined ? {} : { 'Retry-After': jittered(runtime, retryAfter) }),
    ...(known.code === 'REFUSED' ? replayHeaders({ replayed, firstProcessedAt }) : {}),
    [outcomeHeader]: outcome satisfies OutcomeWord,
  };
  return { status, headers: headerLines(all), body: Buffer.from(JSON.stringify(body)) };
}

/** Up to twice as long, so that those who were refused together do not come back together. */
function jittered(runtime: Runtime, seconds: string): string {
  const least = Number(seconds);
  return String(least + Math.round(runtime.random() * Math.max(1, least)));
}

/** The stored answer again, marked as a repeat. */
export function replayResponse<Native>(
  policy: Pick<HttpPolicy<Native>, 'mapProblem'>,
  runtime: Runtime,
  stored: StoredResponse,
  outcome: Omit<Outcome<unknown>, 'value'>,
): HttpResponse {
  const { status, headers, body } = stored.response;
  const marks = headerLines(replayHeaders(outcome));
  if (stored.kind === 'kept') {
    const said = [outcomeHeader, storedOutcome(status)] as const;
    return { status, headers: [...headers, ...marks, said], body };
  }
  const message = `answered ${status}; the body was not kept (${stored.why})`;
  const { firstProcessedAt } = outcome;
  const error = new TurngateError('RESPONSE_NOT_KEPT', message, { firstProcessedAt });
  const problem = problemResponse(policy, runtime, error) as HttpResponse;
  const location = headerValue(headers, 'location');
  const where = location === undefined ? [] : [['Location', location] as const];
  return { ...problem, headers: [...problem.headers, ...where, ...marks] };
}

/** 202 with the place to ask again. */
export function acceptedResponse(
  url: string | undefined,
  retryAfter: string | undefined,
): HttpResponse {
  const headers = {
    'Content-Type': 'application/json',
    Location: url,
    'Retry-After': retryAfter ?? '1',
    [outcomeHeader]: 'unknown' satisfies OutcomeWord,
  };
  return {
    status: 202,
    headers: headerLines(headers),
    body: Buffer.from('{"status":"in-progress"}'),
  };
}
