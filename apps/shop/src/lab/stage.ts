/** One cell at work: its orders, its customers, and what they were told. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { Told } from './audit.ts';
import type { Chance } from './chance.ts';
import type { PaymentServers } from './fleets.ts';
import type { ImplementationId } from './implementations.ts';
import type { Answer } from './payment.ts';
import type { Task } from './wire.ts';

export interface StageParts {
  readonly cell: string;
  readonly implementation: ImplementationId;
  readonly fleet: PaymentServers;
  readonly pool: Pool;
  readonly chance: Chance;
  /** Fewer orders and buyers, same storms. */
  readonly quick: boolean;
}

export interface Asking {
  readonly orderNo: string;
  readonly requestKey: string;
  /** Which server gets it; numbers beyond the last go round. */
  readonly server: number;
  readonly workMs: number;
  readonly stop?: Task['stop'];
  readonly onReached?: () => void;
  /** The client hangs up after this long; the server does not notice and works on. */
  readonly hangUpMs?: number;
}

export interface Patience {
  readonly triesMax: number;
  readonly pauseMs: () => number;
}

// Never sold out by double sales, or the shelf would hide some of them.
const unitsEach = 1_000;

export class Stage {
  readonly chance: Chance;
  readonly quick: boolean;
  readonly told: Told[] = [];
  readonly fleet: PaymentServers;
  private readonly parts: StageParts;

  constructor(parts: StageParts) {
    this.parts = parts;
    this.chance = parts.chance;
    this.quick = parts.quick;
    this.fleet = parts.fleet;
  }

  /** Orders with a shelf each, so that a loss in one does not show in another. */
  async openOrders(count: number): Promise<string[]> {
    return await Promise.all(
      Array.from({ length: count }, async (_, i) => {
        const skuId = await this.addSku(`sku-${i}`, unitsEach);
        return (await this.addOrders(skuId, `order-${i}`, 1))[0] as string;
      }),
    );
  }

  /** Orders that compete for one shelf. */
  async openSale(buyers: number, units: number): Promise<string[]> {
    return await this.addOrders(await this.addSku('sku', units), 'buyer', buyers);
  }

  /** Asks once. Undefined: the client had hung up before the answer came. */
  async ask(asking: Asking): Promise<Answer | undefined> {
    const { orderNo, requestKey, server, workMs, stop, onReached, hangUpMs } = asking;
    const { implementation, fleet } = this.parts;
    const task = { implementation, request: { requestKey, orderNo }, workMs, stop };
    const answered = fleet.call(server, task, onReached);
    const hungUp = new AbortController();
    const answer = await (hangUpMs === undefined
      ? answered
      : Promise.race([
          answered,
          sleep(hangUpMs, undefined, { signal: hungUp.signal }).catch(() => undefined),
        ]));
    hungUp.abort();
    if (answer !== undefined) this.told.push({ orderNo, answer });
    return answer;
  }

  /** Asks until the answer says yes or no, or the customer gives up. */
  async askUntilSettled(
    asking: (attempt: number) => Asking,
    { triesMax, pauseMs }: Patience,
  ): Promise<void> {
    for (let attempt = 0; attempt < triesMax; attempt++) {
      const answer = await this.ask(asking(attempt));
      if (answer !== undefined && answer.kind !== 'failed') return;
      await sleep(pauseMs());
    }
  }

  /** What support does on the customer's word. True: cancelled, and the customer was told so. */
  async cancel(orderNo: string): Promise<boolean> {
    const { rowCount } = await this.parts.pool.query(
      `UPDATE lab_order
       SET status = 'cancelled', version = version + 1, cancelled_at = clock_timestamp()
       WHERE order_no = $1 AND status = 'created'`,
      [orderNo],
    );
    return rowCount === 1;
  }

  private async addSku(name: string, units: number): Promise<string> {
    const id = `${this.parts.cell}/${name}`;
    await this.parts.pool.query(
      'INSERT INTO lab_sku (id, cell, initial, current) VALUES ($1, $2, $3, $3)',
      [id, this.parts.cell, units],
    );
    return id;
  }

  private async addOrders(skuId: string, name: string, count: number): Promise<string[]> {
    const { cell, pool } = this.parts;
    const orderNos = Array.from({ length: count }, (_, i) => `${cell}/${name}-${i}`);
    await pool.query(
      'INSERT INTO lab_order (order_no, cell, sku_id) SELECT unnest($1::text[]), $2, $3',
      [orderNos, cell, skuId],
    );
    return orderNos;
  }
}
