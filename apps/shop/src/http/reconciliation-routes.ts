/** /api/reconciliations */
import type { FastifyInstance } from 'fastify';
import type { ChannelClient } from '../channel/client.ts';
import {
  type ReconciliationDay,
  readReconciliation,
  reconcileDay,
} from '../trade/reconciliation.ts';
import type { Store } from '../trade/store.ts';
import {
  dateParams,
  problemAnswer,
  reconciliationAnswer,
  reconciliationBody,
  reconciliationQuery,
} from './schemas.ts';

const defaultChannel = 'simulator';

/** Adds the routes. */
export function reconciliationRoutes(
  app: FastifyInstance,
  store: Store,
  channel: ChannelClient,
): void {
  const response = { 200: reconciliationAnswer, '4xx': problemAnswer, '5xx': problemAnswer };
  app.post<{ Body: ReconciliationDay }>('/api/reconciliations', {
    schema: {
      summary: 'Compare orders, payments and the channel’s bill of one day',
      description:
        'Idempotent. Key: channel and date in the body; no header needed. A repeat gets the finished report.',
      'x-idempotency': {
        operation: 'reconciliation.run',
        supported: true,
        key: 'channel and date in the body; no header needed',
        repeat: 'the report of the finished run',
        inFlight: '409 RECONCILIATION_RUNNING',
      },
      body: reconciliationBody,
      response,
    } as object,
    handler: ({ body }) => reconcileDay(store, channel, body),
  });
  app.get<{ Params: { date: string }; Querystring: { channel?: string } }>(
    '/api/reconciliations/:date',
    {
      schema: {
        summary: 'The report of a compared day',
        params: dateParams,
        querystring: reconciliationQuery,
        response,
      },
      handler: ({ params: { date }, query }) =>
        readReconciliation(store, { date, channel: query.channel ?? defaultChannel }),
    },
  );
}
