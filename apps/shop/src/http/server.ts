/** The HTTP service over the library's public entries. */
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { createGate, type Gate } from 'turngate';
import type { LockStore } from 'turngate/contract';
import { createJobRunner } from 'turngate/job';
import { type ChannelAccess, ChannelClient } from '../channel/client.ts';
import { payUrl } from '../channel/pay-link.ts';
import type { SharedRedis } from '../database/page-cache.ts';
import type { ShopDatabase } from '../database/shop-database.ts';
import { depotParticipant, supplyOperation } from '../depot/depot.ts';
import { type DepotAccess, remoteDepot } from '../depot/server.ts';
import { startMessages } from '../messages/start.ts';
import { logEvents } from '../observe/logging.ts';
import { startMetrics } from '../observe/metrics.ts';
import { accountOperations } from '../trade/accounts.ts';
import { activityOperations } from '../trade/activities.ts';
import { type ArchiveSettings, archiveJob } from '../trade/archive-job.ts';
import { type Callback, callbackOperation } from '../trade/callback.ts';
import { checkoutOperation } from '../trade/checkout.ts';
import { couponOperations } from '../trade/coupons.ts';
import { orderOperations } from '../trade/orders.ts';
import { startPaymentOperation } from '../trade/payments.ts';
import { type PageSettings, productReader } from '../trade/product.ts';
import { refundOperation } from '../trade/refunds.ts';
import { returnOperations } from '../trade/returns.ts';
import { skuOperations } from '../trade/skus.ts';
import type { Store, Tx } from '../trade/store.ts';
import { submitOperations } from '../trade/submits.ts';
import { startWorkers } from '../trade/workers.ts';
import { newApp } from './app.ts';
import { callbackRoutes } from './callback-routes.ts';
import { checkoutRoutes } from './checkout-routes.ts';
import { depotRoutes } from './depot-routes.ts';
import { moneyRoutes } from './money-routes.ts';
import { operationRoutes } from './operation-routes.ts';
import { orderRoutes } from './order-routes.ts';
import { type PageLimit, pageLimit } from './page-limit.ts';
import { promotionRoutes } from './promotion-routes.ts';
import { reconciliationRoutes } from './reconciliation-routes.ts';
import { returnRoutes } from './return-routes.ts';
import { skuRoutes } from './sku-routes.ts';
import { tokenRoutes } from './token-routes.ts';

/** The service and the gate behind it. */
export interface ShopServer {
  readonly app: FastifyInstance;
  readonly gate: Gate<Tx>;
  /** Stops taking requests, finishes what runs. The pool stays open. */
  close(): Promise<void>;
}

/** What a shop may have besides its database, its channel and its locks. */
export interface ShopParts {
  /** A depot of its own; undefined: the shop's database has it. */
  readonly depot?: DepotAccess | undefined;
  /** A RabbitMQ between the outbox and its consumers; undefined: they are in this process. */
  readonly amqpUrl?: string | undefined;
  /** Shared limits and cached pages; undefined: they are of this process alone. */
  readonly redis?: SharedRedis | undefined;
  readonly page?: (PageSettings & PageLimit) | undefined;
  /** Undefined: nothing is archived. */
  readonly archive?: ArchiveSettings | undefined;
}

const pageDefaults: PageSettings & PageLimit = { freshMs: 10_000, perSecond: 1_000, burst: 2_000 };

/** Sagas and checkouts of a dead process go on after their lease and this. */
const recoverEveryMs = 1_000;

/** Builds it; call `app.listen` or `app.inject` on the result. */
export async function buildServer(
  { records, staged, database, snapshot }: ShopDatabase,
  locks: LockStore,
  logger: Logger,
  channel: ChannelAccess,
  { depot, amqpUrl, redis, page = pageDefaults, archive }: ShopParts = {},
): Promise<ShopServer> {
  const gate = createGate({ records, locks, staged });
  const store: Store = { gate, database, snapshot };
  const metrics = startMetrics();
  const stopLogging = logEvents(logger);
  const app = await newApp(logger, {
    title: 'Turngate shop',
    description: 'Reference order-payment service. Money is integer minor units.',
  });
  const callback = callbackOperation(store);
  const client = new ChannelClient(channel);
  skuRoutes(
    app,
    { read: productReader(store, page, redis), limit: pageLimit(page, redis) },
    skuOperations(store),
  );
  await addRoutes(app, store, channel, callback);
  reconciliationRoutes(app, store, client);
  returnRoutes(app, store, returnOperations(store, client));
  checkoutRoutes(
    app,
    checkoutOperation(store, depot ? remoteDepot(depot) : depotParticipant(database)),
  );
  if (depot === undefined) depotRoutes(app, database, supplyOperation(gate, database));
  const workers = startWorkers({ store, channel: client, callback }, logger);
  const jobs = createJobRunner(database, archive ? [archiveJob(store, archive)] : []);
  jobs.start();
  const messages = startMessages(database, amqpUrl, logger);
  operationRoutes(app, store, metrics.registry);
  gate.recover({ everyMs: recoverEveryMs });
  return {
    app,
    gate,
    async close() {
      await app.close();
      await workers.stop();
      await jobs.stop();
      await messages.stop();
      await gate.close();
      metrics.stop();
      stopLogging();
    },
  };
}

async function addRoutes(
  app: FastifyInstance,
  store: Store,
  channel: ChannelAccess,
  callback: Callback,
): Promise<void> {
  const submits = submitOperations(store);
  tokenRoutes(app, submits);
  orderRoutes(app, store, orderOperations(store), submits);
  moneyRoutes(app, store, {
    ...accountOperations(store),
    startPayment: startPaymentOperation(store, (link) => payUrl(channel, link)),
    refund: refundOperation(store),
  });
  promotionRoutes(app, couponOperations(store), activityOperations(store));
  await callbackRoutes(app, callback, channel.secret);
}
