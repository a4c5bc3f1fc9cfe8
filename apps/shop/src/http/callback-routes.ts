/** The channel's callbacks: signature over the raw bytes first, then the body, then the effect. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { parseStrictJson } from 'turngate';
import { replayHeaders } from 'turngate/http';
import { whyUnsigned } from '../channel/signature.ts';
import type { Callback, PaymentCallback } from '../trade/callback.ts';
import { ShopError } from '../trade/shop-error.ts';
import { callbackBody } from './schemas.ts';
import { writingSchema } from './writing-route.ts';

/** The exact bytes the channel waits for; anything else makes it send again. */
const acknowledged = 'success';

/** Adds the route, in a scope of its own: only here the body stays raw. */
export async function callbackRoutes(
  app: FastifyInstance,
  callback: Callback,
  secret: string,
): Promise<void> {
  await app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser(
      '*',
      { parseAs: 'buffer' },
      async (_: unknown, body: Buffer) => body,
    );
    scope.post<{ Body: Buffer }>('/api/callbacks/payment', {
      schema: writingSchema({
        policy: callback.policy,
        summary: 'The channel tells how a payment ended',
        answers: { 200: { type: 'string', const: acknowledged } },
      }),
      handler: async (request, reply) => {
        const raw = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
        const nowS = Math.floor(Date.now() / 1000);
        const why = whyUnsigned(secret, raw, request.headers['channel-signature'], nowS);
        if (why !== undefined) {
          request.log.warn({ why }, 'callback refused');
          throw new ShopError('SIGNATURE_INVALID', 'the signature is missing, wrong or too old');
        }
        const outcome = await callback(parseCallback(request, raw));
        if (outcome.value === 'mismatch') {
          const message = 'payment, order, amount and currency do not belong together';
          throw new ShopError('CALLBACK_MISMATCH', message);
        }
        return reply
          .code(200)
          .type('text/plain; charset=utf-8')
          .headers(replayHeaders(outcome))
          .serializer((text: unknown) => text as string)
          .send(acknowledged);
      },
    });
  });
}

function parseCallback(request: FastifyRequest, raw: Buffer): PaymentCallback {
  let value: unknown;
  try {
    value = parseStrictJson(raw.toString('utf8'));
  } catch (error) {
    throw new ShopError('VALIDATION_FAILED', `the body is not JSON: ${(error as Error).message}`);
  }
  const isValid = request.compileValidationSchema(callbackBody);
  if (isValid(value)) return value as PaymentCallback;
  const [error] = isValid.errors ?? [];
  throw new ShopError('VALIDATION_FAILED', `body${error?.instancePath ?? ''} ${error?.message}`);
}
