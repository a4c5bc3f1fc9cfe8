/** The life of an order. */
import { defineFlow } from 'turngate';
import { postgresSession } from 'turngate/postgres';

/** PENDING_PAY leads to PAID or CANCELLED, and nothing leads back. */
export const orderFlow = defineFlow(
  {
    name: 'order',
    table: 'shop_order',
    idColumn: 'order_no',
    states: ['PENDING_PAY', 'PAID', 'CANCELLED'],
    transitions: {
      pay: { from: ['PENDING_PAY'], to: 'PAID' },
      cancel: { from: ['PENDING_PAY'], to: 'CANCELLED' },
    },
  },
  postgresSession,
);
