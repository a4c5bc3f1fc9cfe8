/** The simulated payment channel over HTTP: pay page, query, close, refund, bill. */
import { randomBytes } from 'node:crypto';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { billOf } from './bill.ts';
import type { ChannelBook, ChannelPayment } from './book.ts';
import type { Behaviour, Notifier } from './notifier.ts';
import { type PayLink, seal } from './pay-link.ts';
import { whyUnsigned } from './signature.ts';

/** Builds the channel. */
export function channelServer(
  book: ChannelBook,
  notifier: Notifier,
  secret: string,
): FastifyInstance {
  const app = Fastify({ bodyLimit: 65_536 });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, async (_: unknown, body: Buffer) => body);
  payRoutes(app, book, notifier, secret);
  merchantRoutes(app, book, secret);
  app.put('/behaviour', async ({ body }) => {
    notifier.behaviour = { ...notifier.behaviour, ...(parse(body) as Partial<Behaviour>) };
    return notifier.behaviour;
  });
  app.get('/healthz', async () => ({ status: 'ok', callbacksPending: notifier.pending }));
  return app;
}

/** What a customer does. */
function payRoutes(
  app: FastifyInstance,
  book: ChannelBook,
  notifier: Notifier,
  secret: string,
): void {
  const linkOf = (request: FastifyRequest): PayLink | undefined => {
    const { paymentNo } = request.params as { paymentNo: string };
    const query = request.query as Record<string, string>;
    const amountMinor = Number(query['amountMinor']);
    const { orderNo = '', currency = '' } = query;
    const link = { paymentNo, orderNo, amountMinor, currency };
    return query['seal'] === seal(secret, link) ? link : undefined;
  };
  app.get('/pay/:paymentNo', async (request, reply) => {
    const link = linkOf(request);
    if (link === undefined) return reply.code(400).send({ code: 'LINK_INVALID' });
    return reply.type('text/html; charset=utf-8').send(payPage(link, request.url));
  });
  app.post('/pay/:paymentNo', async (request, reply) => {
    const link = linkOf(request);
    if (link === undefined) return reply.code(400).send({ code: 'LINK_INVALID' });
    const wanted = (request.query as Record<string, string>)['result'];
    const status = wanted === 'FAILED' ? 'FAILED' : 'SUCCESS';
    const tradeNo = `T${randomBytes(8).toString('hex')}`;
    const payment = book.settle({ ...link, status, tradeNo, at: new Date().toISOString() });
    if (payment.status === 'CLOSED') return reply.code(409).send({ code: 'PAYMENT_CLOSED' });
    notifier.notify(payment);
    return payment;
  });
}

/** What the shop does; its requests are signed like the callbacks. */
function merchantRoutes(app: FastifyInstance, book: ChannelBook, secret: string): void {
  const signed = async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const body = Buffer.isBuffer(request.body) ? request.body : Buffer.from(request.url);
    const nowS = Math.floor(Date.now() / 1000);
    const why = whyUnsigned(secret, body, request.headers['channel-signature'], nowS);
    return why === undefined ? undefined : reply.code(401).send({ code: 'SIGNATURE_INVALID', why });
  };
  const options = { preHandler: signed };
  app.get('/api/payments/:paymentNo', options, async (request) => {
    const { paymentNo } = request.params as { paymentNo: string };
    return book.payments.get(paymentNo) ?? { paymentNo, status: 'UNPAID' };
  });
  app.post('/api/payments/close', options, async ({ body }) => {
    const link = parse(body) as PayLink;
    const closed: ChannelPayment = {
      ...link,
      status: 'CLOSED',
      tradeNo: '',
      at: new Date().toISOString(),
    };
    return book.settle(closed); // Whoever has paid before has paid: that is the answer then.
  });
  app.post('/api/refunds', options, async ({ body }, reply) => {
    const wish = parse(body) as { refundNo: string; paymentNo: string; amountMinor: number };
    const currency = book.payments.get(wish.paymentNo)?.currency ?? '';
    const refund = book.refund({ ...wish, currency, at: new Date().toISOString() });
    if (refund === undefined) return reply.code(409).send({ code: 'REFUND_NOT_POSSIBLE' });
    if (refund.amountMinor !== wish.amountMinor || refund.paymentNo !== wish.paymentNo) {
      return reply.code(422).send({ code: 'REFUND_NO_REUSED' });
    }
    return refund;
  });
  app.get('/api/bills/:date', options, async (request, reply) => {
    const { date } = request.params as { date: string };
    return reply.type('text/csv; charset=utf-8').send(billOf(book, date));
  });
}

function parse(body: unknown): unknown {
  return JSON.parse((body as Buffer).toString('utf8'));
}

function payPage({ paymentNo, amountMinor, currency }: PayLink, url: string): string {
  const action = url.replaceAll('&', '&amp;').replaceAll('"', '&quot;');
  return `<!doctype html><meta charset="utf-8"><title>Pay</title>
<h1>Pay ${(amountMinor / 100).toFixed(2)} ${currency}</h1><p>Payment ${paymentNo}</p>
<form method="post" action="${action}"><button>Pay</button>
<button formaction="${action}&amp;result=FAILED">Decline</button></form>`;
}
