/** Orders by submit token: for pages that fetch a token with the form instead of making a key. */
import type { Operation } from 'turngate';
import { createSubmitTokens, type SubmitTokens, submitTokenDigest } from 'turngate/token';
import { type Order, writeOrder } from './orders.ts';
import type { Store, Tx } from './store.ts';

/** What tokens are issued for. */
export const tokenOperation = 'order.create';

const tokenTtlMs = 30 * 60_000;

/** An order as a form sends it. */
export interface SubmitOrder {
  readonly token: string;
  readonly userId: string;
  readonly skuId: string;
  readonly quantity: number;
}

/** Issuing tokens, and creating an order for one. */
export interface Submits {
  readonly tokens: SubmitTokens;
  readonly submit: Operation<Tx, SubmitOrder, Order>;
}

/** Declares them. */
export function submitOperations({ gate, database }: Store): Submits {
  const tokens = createSubmitTokens({ database, ttlMs: tokenTtlMs });
  const given = ({ token, userId }: SubmitOrder) => ({
    token,
    operation: tokenOperation,
    subject: `user:${userId}`,
  });
  return {
    tokens,
    // The record under the token's digest is what tells a repeat which order the first one made, and
    // keeps rivals from waiting with a connection in their hands. Spending the token in the same
    // transaction is what makes it valid in the first place.
    submit: gate.operation({
      name: 'order.submit',
      scope: (order: SubmitOrder) => `user:${order.userId}`,
      key: (order: SubmitOrder) => submitTokenDigest(given(order)),
      keySource: 'the Submit-Token header, per user',
      // One form, one order: what a later submit of it says does not matter.
      fingerprint: () => null,
      async run(order, { tx, key }) {
        const sql = database.session(tx);
        await tokens.consume(sql, given(order));
        const { userId, skuId, quantity } = order;
        return writeOrder({ userId, skuId, quantity, clientKey: submitKey(key) }, sql);
      },
    }),
  };
}

/** Apart from the keys that clients make. */
function submitKey(digest: string): string {
  return `submit:${digest}`;
}
