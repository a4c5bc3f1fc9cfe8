/** The depot as a service of its own: its stock, and its side of checkouts, over HTTP. */
import { timingSafeEqual } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { createGate } from 'turngate';
import { memoryLocks } from 'turngate/memory';
import { httpParticipant, type Participant, participantEndpoint } from 'turngate/saga';
import type { ShopDatabase } from '../database/shop-database.ts';
import { newApp } from '../http/app.ts';
import { depotRoutes } from '../http/depot-routes.ts';
import { operationRoutes } from '../http/operation-routes.ts';
import { startMetrics } from '../observe/metrics.ts';
import { ShopError } from '../trade/shop-error.ts';
import { type DepotHold, depotParticipant, supplyOperation } from './depot.ts';

/** Where a depot of its own answers, and what proves that it is us who ask. */
export interface DepotAccess {
  readonly url: string;
  readonly secret: string;
}

const branchPath = '/branches/stock';
const answerMs = 5_000;

/** The depot as the shop's checkouts see it. */
export function remoteDepot({ url, secret }: DepotAccess): Participant<DepotHold> {
  return httpParticipant<DepotHold>({
    url: `${url}${branchPath}`,
    timeoutMs: answerMs,
    headers: { authorization: `Bearer ${secret}` },
  });
}

/** Builds the service; call `app.listen` on the result. */
export async function buildDepot(
  { records, staged, database, snapshot }: ShopDatabase,
  logger: Logger,
  secret: string,
): Promise<{ readonly app: FastifyInstance; close(): Promise<void> }> {
  const gate = createGate({ records, locks: memoryLocks(), staged });
  const metrics = startMetrics();
  const app = await newApp(logger, {
    title: 'Turngate depot',
    description: 'Units of articles, held and taken by the shop’s checkouts.',
  });
  depotRoutes(app, database, supplyOperation(gate, database));
  operationRoutes(app, { gate, database, snapshot }, metrics.registry);
  const answer = participantEndpoint(depotParticipant(database) as Participant<unknown>);
  app.post(branchPath, {
    schema: {
      summary: 'A branch of a checkout: try, confirm, cancel',
      'x-idempotency': {
        key: 'the Turngate-Gid, Turngate-Branch and Turngate-Op headers',
        repeat: 'the first answer',
        inFlight: 'waits for the first',
      },
    } as object,
    async handler({ headers, body }, reply) {
      if (!isOurs(headers.authorization, secret)) {
        throw new ShopError('SIGNATURE_INVALID', 'the bearer token is missing or wrong');
      }
      const { status, body: text } = await answer({ headers, body: JSON.stringify(body ?? null) });
      return reply.code(status).type('application/json').send(text);
    },
  });
  return {
    app,
    async close() {
      await app.close();
      await gate.close();
      metrics.stop();
    },
  };
}

function isOurs(header: string | undefined, secret: string): boolean {
  const given = Buffer.from(header ?? '');
  const wanted = Buffer.from(`Bearer ${secret}`);
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}
