/** What a storm finds in the shop: articles, orders, attempts to pay, all made by the shop itself. */
import type { PaymentCallback } from '../../trade/callback.ts';
import { orderOperations } from '../../trade/orders.ts';
import { startPaymentOperation } from '../../trade/payments.ts';
import { skuOperations } from '../../trade/skus.ts';
import type { Store } from '../../trade/store.ts';

/** Money of an order that the channel has taken. */
export type ChannelPayment = Omit<PaymentCallback, 'eventId' | 'status'>;

const priceMinor = 1_000;
const unitsEnough = 10_000;
const paidAt = '2026-11-29T10:00:00.000Z';

export class ShopFloor {
  readonly priceMinor = priceMinor;
  private readonly orders: ReturnType<typeof orderOperations>;
  private readonly skus: ReturnType<typeof skuOperations>;
  private readonly startPayment: ReturnType<typeof startPaymentOperation>;

  constructor(store: Store) {
    this.orders = orderOperations(store);
    this.skus = skuOperations(store);
    this.startPayment = startPaymentOperation(store, () => 'nowhere');
  }

  async openSku(skuId = 'sku', stock = unitsEnough): Promise<string> {
    await this.skus.create({ skuId, name: skuId, priceMinor, stock });
    return skuId;
  }

  /** Orders of one unit each, by customers `user-0`, `user-1`, …. */
  async openOrders(count: number): Promise<string[]> {
    const skuId = await this.openSku();
    return await Promise.all(
      Array.from({ length: count }, (_, i) => this.openOrder(`user-${i}`, skuId)),
    );
  }

  /** An order of one unit by a customer. */
  async openOrder(userId: string, skuId: string): Promise<string> {
    const order = { userId, skuId, quantity: 1, idempotencyKey: `page-${userId}` };
    return (await this.orders.create(order)).value.orderNo;
  }

  /** Orders paid in cash. */
  async openPaidOrders(count: number): Promise<string[]> {
    const orders = await this.openOrders(count);
    await Promise.all(orders.map((orderNo) => this.orders.pay({ orderNo })));
    return orders;
  }

  /** The customer pays an order through the channel; the shop has not heard of it yet. */
  async payAtChannel(orderNo: string): Promise<ChannelPayment> {
    const { paymentNo } = (await this.startPayment({ orderNo, attempt: 1 })).value;
    return {
      paymentNo,
      orderNo,
      tradeNo: `trade-${paymentNo}`,
      amountMinor: priceMinor,
      currency: 'CNY',
      paidAt,
    };
  }
}
