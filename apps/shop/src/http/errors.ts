/** Every error as problem+json with a stable code; nothing internal leaves. */
import type { FastifyError, FastifyInstance, FastifyReply } from 'fastify';
import { isTurngateError } from 'turngate';
import { type Problem, problem, problemOf } from 'turngate/http';
import { mysqlError } from 'turngate/mysql';
import { postgresError } from 'turngate/postgres';
import { ShopError, type ShopErrorCode } from '../trade/shop-error.ts';

const titles: Partial<Record<ShopErrorCode, string>> = {
  VALIDATION_FAILED: 'The request is not valid; nothing was changed.',
  ROUTE_NOT_FOUND: 'There is no such call.',
  TOO_MANY_REQUESTS: 'Too many requests from this address; ask again later.',
  INTERNAL_ERROR: 'Something went wrong inside.',
};

/** Fastify's own errors by code prefix. */
const fastifyCodes: readonly [RegExp, ShopErrorCode][] = [
  [/^FST_ERR_CTP_BODY_TOO_LARGE/, 'PAYLOAD_TOO_LARGE'],
  [/^FST_ERR_CTP_INVALID_MEDIA_TYPE/, 'UNSUPPORTED_MEDIA_TYPE'],
  [/^FST_ERR_(CTP|VALIDATION|BAD_URL|PARAM)|^FST_ERR_.*INVALID/, 'VALIDATION_FAILED'],
];

/** Installs the handlers. */
export function handleErrors(app: FastifyInstance): void {
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const answer = answerTo(error);
    if (answer.status >= 500) request.log.error({ err: error, code: answer.body.code }, 'failed');
    return send(reply, answer);
  });
  app.setNotFoundHandler((request, reply) => {
    const detail = `there is no ${request.method} at this path`;
    return send(reply, shopProblem(new ShopError('ROUTE_NOT_FOUND', detail)));
  });
}

/** Sends an error that Fastify met before any route, such as a bad URL. */
export function sendError(reply: FastifyReply, error: FastifyError): FastifyReply {
  return send(reply, answerTo(error));
}

function answerTo(error: FastifyError): Problem {
  if (error instanceof ShopError) return shopProblem(error);
  if (error.validation !== undefined) return shopProblem(invalid(error.message));
  // Strict JSON parsing refuses repeated members and unsafe integers with Turngate's option error.
  if (isTurngateError(error, 'OPTION_INVALID')) return shopProblem(invalid(error.message));
  const known = problemOf(error) ?? problemOf(postgresError(error)) ?? problemOf(mysqlError(error));
  if (known !== undefined) return known;
  for (const [pattern, code] of fastifyCodes) {
    if (pattern.test(error.code ?? '')) return shopProblem(new ShopError(code, error.message));
  }
  if (error.statusCode === 400) return shopProblem(invalid(error.message));
  return shopProblem(new ShopError('INTERNAL_ERROR', 'see the log of the service'));
}

function invalid(message: string): ShopError {
  return new ShopError('VALIDATION_FAILED', message);
}

function shopProblem(error: ShopError): Problem {
  const { code, status, message: detail, extensions, retryAfterMs } = error;
  const title = titles[code] ?? detail;
  return problem({ code, status, title, detail, retryAfterMs, extensions });
}

function send(reply: FastifyReply, { status, headers, body }: Problem): FastifyReply {
  // Serialised here: a route's answer schema must not touch a problem.
  return reply.code(status).headers(headers).serializer(JSON.stringify).send(body);
}
