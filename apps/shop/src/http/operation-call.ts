/** A writing call that is nothing but its operation: path and body in, first result out. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { isTurngateError, type OperationPolicy, type Outcome } from 'turngate';
import { replayHeaders } from 'turngate/http';
import { ShopError, type ShopErrorCode } from '../trade/shop-error.ts';
import { writingSchema } from './writing-route.ts';

/** How a call is served. */
export interface OperationCall<Input, Value> {
  readonly url: string;
  readonly operation: ((input: Input) => Promise<Outcome<Value>>) & {
    readonly policy: OperationPolicy;
  };
  readonly summary: string;
  readonly params?: object;
  readonly body?: object;
  readonly answer: object;
  /** 201 for what creates something, also when it is replayed. */
  readonly status: 200 | 201;
  readonly input: (request: {
    readonly params: Record<string, string>;
    readonly body: never;
  }) => Input | Promise<Input>;
  /** What is sent; default the value itself. */
  readonly output?: (value: Value, input: Input) => unknown;
  /** Started after the operation, not waited for. */
  readonly after?: (input: Input) => void;
  /** The code for a name that exists with another definition; default IDEMPOTENCY_KEY_REUSED. */
  readonly conflict?: ShopErrorCode;
}

/** Adds the route. */
export function operationCall<Input, Value>(
  app: FastifyInstance,
  call: OperationCall<Input, Value>,
): void {
  const { operation, summary, params, body, answer, status } = call;
  app.post(call.url, {
    schema: writingSchema({
      policy: operation.policy,
      summary,
      ...(params === undefined ? {} : { params }),
      ...(body === undefined ? {} : { body }),
      answers: { [status]: answer },
    }),
    handler: async (request: FastifyRequest, reply) => {
      const input = await call.input(request as unknown as Parameters<typeof call.input>[0]);
      const outcome = await operation(input).catch((error: unknown) => {
        if (call.conflict === undefined || !isTurngateError(error, 'IDEMPOTENCY_KEY_REUSED')) {
          throw error;
        }
        throw new ShopError(call.conflict, 'this exists with another definition');
      });
      call.after?.(input);
      const value = call.output?.(outcome.value, input) ?? outcome.value;
      return reply.code(status).headers(replayHeaders(outcome)).send(value);
    },
  });
}
