/**
 * RIGHT: one operation keyed by the order number, its record in the transaction of the sale; the order
 * moves by a guarded transition and the stock by a guarded update. No lock: repeats of one order meet
 * in the record, and different orders meet in one UPDATE.
 */
import type { Pool, PoolClient } from 'pg';
import { createGate, defineFlow, isTurngateError, type Operation, refuse } from 'turngate';
import { postgres, postgresSession } from 'turngate/postgres';
import { type Answer, type Payer, type PayRequest, Refused, type Trial } from '../payment.ts';

interface Input extends PayRequest {
  readonly trial: Trial;
}

type Pay = Operation<PoolClient, Input, { readonly chargedNow: boolean }>;

export function turngate(pool: Pool): Payer {
  const payOrder = declarePay(pool);
  return { pay: async (request, trial) => await pay(payOrder, { ...request, trial }) };
}

function declarePay(pool: Pool): Pay {
  const flow = defineFlow<PoolClient, 'created' | 'paid' | 'cancelled', 'pay' | 'cancel'>(
    {
      name: 'lab_order',
      table: 'lab_order',
      idColumn: 'order_no',
      states: ['created', 'paid', 'cancelled'],
      transitions: {
        pay: { from: ['created'], to: 'paid' },
        cancel: { from: ['created'], to: 'cancelled' },
      },
    },
    postgresSession,
  );
  return createGate({ records: postgres(pool) }).operation({
    name: 'lab.pay',
    // What must happen once is the payment of the order, whichever key a client made up for it.
    key: ({ orderNo }: Input) => orderNo,
    fingerprint: ({ orderNo }) => orderNo,
    async run({ orderNo, requestKey, trial }, { tx: handle }) {
      const tx = handle as PoolClient;
      const moved = await flow.fire('pay', { tx, id: orderNo });
      if (moved.kind === 'already') return { chargedNow: false };
      if (moved.kind !== 'applied') throw refuse('ORDER_NOT_PAYABLE', `order is ${moved.kind}`);
      await trial.work();
      await tx.query('INSERT INTO lab_charge (order_no, request_key) VALUES ($1, $2)', [
        orderNo,
        requestKey,
      ]);
      await trial.at('after-charge');
      await takeUnit(tx, orderNo);
      await trial.at('before-commit');
      return { chargedNow: true };
    },
  });
}

/** Not remembered, unlike `refuse(…)`: the same order may be paid when there is stock again. */
async function takeUnit(tx: PoolClient, orderNo: string): Promise<void> {
  const { rowCount } = await tx.query(
    `UPDATE lab_sku SET current = current - 1
     WHERE id = (SELECT sku_id FROM lab_order WHERE order_no = $1) AND current >= 1`,
    [orderNo],
  );
  if (rowCount === 0) throw new Refused('sold out');
}

async function pay(payOrder: Pay, input: Input): Promise<Answer> {
  try {
    const { value, replayed } = await payOrder(input);
    await input.trial.at('after-commit');
    return { kind: value.chargedNow && !replayed ? 'paid' : 'already' };
  } catch (error) {
    if (error instanceof Refused) return { kind: 'refused', why: error.message };
    if (isTurngateError(error, 'REFUSED')) return { kind: 'refused', why: error.message };
    throw error;
  }
}
