/** Errors as RFC 9457 problem details. */
import { errorTable, isTurngateError } from '../core/errors.ts';

/** A problem document and the headers that go with it. */
export interface Problem {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: {
    readonly type: string;
    readonly title: string;
    readonly status: number;
    readonly code: string;
    readonly detail: string;
    readonly [extension: string]: unknown;
  };
}

/** What a problem is made of, for errors that are not Turngate's. */
export interface ProblemParts {
  readonly status: number;
  readonly code: string;
  readonly title: string;
  readonly detail: string;
  readonly retryAfterMs?: number | undefined;
  readonly extensions?: Record<string, unknown>;
}

/** Builds a problem document; `type` is a stable URN made from the code. */
export function problem(parts: ProblemParts): Problem {
  const { status, code, title, detail, retryAfterMs, extensions = {} } = parts;
  const headers: Record<string, string> = { 'Content-Type': 'application/problem+json' };
  if (retryAfterMs !== undefined) {
    headers['Retry-After'] = String(Math.max(1, Math.ceil(retryAfterMs / 1_000)));
  }
  const type = `urn:turngate:problem:${code.toLowerCase().replaceAll('_', '-')}`;
  return { status, headers, body: { type, title, status, code, detail, ...extensions } };
}

/**
 * The problem document of a Turngate error; undefined for any other error. A remembered refusal
 * speaks with its own code. Messages of 5xx errors stay inside: they may name hosts or tables.
 */
export function problemOf(error: unknown): Problem | undefined {
  if (!isTurngateError(error)) return undefined;
  const { code, outcome, refusal, firstProcessedAt, httpStatus: status } = error;
  const { advice } = errorTable[code];
  const extensions: Record<string, unknown> = { outcome };
  if (firstProcessedAt !== undefined)
    extensions['firstProcessedAt'] = firstProcessedAt.toISOString();
  if (refusal?.data !== undefined) extensions['data'] = refusal.data;
  const retryAfterMs = error.retryAfterMs ?? (status === 503 ? 1_000 : undefined);
  return problem({
    status,
    code: refusal?.code ?? code,
    title: refusal?.message ?? advice,
    detail: status >= 500 ? advice : error.message,
    retryAfterMs,
    extensions,
  });
}
