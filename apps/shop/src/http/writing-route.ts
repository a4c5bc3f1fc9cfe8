/** What every writing call must say about its idempotency, from the operation's own declaration. */
import type { FastifyInstance, RouteOptions } from 'fastify';
import type { OperationPolicy } from 'turngate';
import { type IdempotencyStatement, idempotencyStatement } from 'turngate/http';
import { problemAnswer } from './schemas.ts';

const readingMethods = new Set(['GET', 'HEAD', 'OPTIONS']);

const idempotencyKey = {
  type: 'string',
  description: 'One key per intent, kept over all retries: 1 to 255 visible ASCII characters.',
};
const submitToken = {
  type: 'string',
  description:
    'A token of POST /api/tokens, instead of Idempotency-Key. Spent by the first success.',
};

/** How a writing route is described. */
export interface WritingRoute {
  readonly policy: OperationPolicy;
  readonly summary: string;
  readonly params?: object;
  readonly body?: object;
  /** Answers by status. */
  readonly answers: Record<number, object>;
  readonly keyInHeader?: boolean;
  /** The operation behind a Submit-Token sent instead of the key. */
  readonly submitPolicy?: OperationPolicy;
}

/** The Fastify schema of a writing route, idempotency statement included. */
export function writingSchema(route: WritingRoute): object {
  const { policy, summary, params, body, answers, keyInHeader = false, submitPolicy } = route;
  const statement = idempotencyStatement(policy);
  const bySubmit = submitPolicy === undefined ? undefined : submitStatement(submitPolicy);
  const keys = {
    'idempotency-key': idempotencyKey,
    ...(bySubmit === undefined ? {} : { 'submit-token': submitToken }),
  };
  const instead =
    bySubmit === undefined ? '' : ` Or key: ${bySubmit.key}; a repeat gets ${bySubmit.repeat}.`;
  const replay = {
    'Idempotent-Replayed': { type: 'string', description: '"true" when this is a repeat' },
    'Idempotency-First-Processed-At': { type: 'string', format: 'date-time' },
  };
  const response: Record<string, object> = { '4xx': problemAnswer, '5xx': problemAnswer };
  for (const [status, answer] of Object.entries(answers)) {
    response[status] = { ...answer, description: summary, headers: replay };
  }
  return {
    summary,
    description: `Idempotent. Key: ${statement.key}. A repeat gets ${statement.repeat}. While the first still runs: ${statement.inFlight}.${instead}`,
    'x-idempotency': {
      ...statement,
      ...(bySubmit === undefined ? {} : { alternative: bySubmit }),
    },
    ...(params === undefined ? {} : { params }),
    ...(body === undefined ? {} : { body }),
    ...(keyInHeader ? { headers: { type: 'object', properties: keys } } : {}),
    response,
  };
}

function submitStatement(policy: OperationPolicy): IdempotencyStatement {
  return {
    ...idempotencyStatement(policy),
    repeat: '409 REPEATED_SUBMIT with the time the first was processed and its orderNo',
  };
}

/** Refuses to start with a writing route that does not state its idempotency. */
export function requireStatements(app: FastifyInstance): void {
  app.addHook('onRoute', (route: RouteOptions) => {
    const methods = [route.method].flat();
    if (methods.every((method) => readingMethods.has(method))) return;
    const schema = route.schema as Record<string, unknown> | undefined;
    if (schema?.['x-idempotency'] !== undefined) return;
    throw new Error(
      `${methods.join()} ${route.url} does not state its idempotency (x-idempotency)`,
    );
  });
}
