/** Flash sales: units set aside from an article, so many per customer. */
import type { Operation } from 'turngate';
import type { SqlSession } from 'turngate/contract';
import { activityStock, itemOf, reservationOf } from './activity-stock.ts';
import { writeOrder } from './orders.ts';
import { ShopError } from './shop-error.ts';
import { skuNotFound } from './skus.ts';
import { firstRow, type Store, type Tx } from './store.ts';

/** A flash sale as it is announced. */
export interface Activity {
  readonly activityId: string;
  readonly skuId: string;
  readonly units: number;
  readonly perUser: number;
}

/** One customer buys one unit. */
export interface Purchase {
  readonly activityId: string;
  readonly userId: string;
}

/** The order it made. */
export interface Purchased {
  readonly orderNo: string;
}

/** Writing calls about flash sales. */
export interface ActivityOperations {
  readonly create: Operation<Tx, Activity, Activity>;
  readonly purchase: Operation<Tx, Purchase, Purchased>;
}

const yearsMs = 3_650 * 86_400_000;
const holdMsMax = 31 * 86_400_000;

/** Declares them. */
export function activityOperations(store: Store): ActivityOperations {
  const { gate, database } = store;
  return {
    create: gate.operation({
      name: 'activity.create',
      key: ({ activityId }: Activity) => activityId,
      keySource: 'activityId in the body; no header needed',
      retentionMs: yearsMs,
      run: (activity, { tx }) => insertActivity(activity, database.session(tx)),
    }),
    purchase: gate.operation({
      name: 'activity.purchase',
      scope: ({ activityId }: Purchase) => `activity:${activityId}`,
      key: ({ userId }: Purchase) => userId, // One per customer and activity: that is the rule itself.
      keySource: 'activityId in the path and userId in the body; no header needed',
      retentionMs: yearsMs,
      run: (purchase, { tx }) => buy(purchase, store, database.session(tx)),
    }),
  };
}

async function insertActivity(activity: Activity, sql: SqlSession): Promise<Activity> {
  const { activityId, skuId, units, perUser } = activity;
  const { affectedRows } = await sql.query(
    `UPDATE shop_sku SET stock_current = stock_current - $2
     WHERE sku_id = $1 AND stock_current >= $2`,
    [skuId, units],
  );
  if (affectedRows === 0) {
    const known = await firstRow(sql, 'SELECT 1 AS known FROM shop_sku WHERE sku_id = $1', [skuId]);
    if (known === undefined) throw skuNotFound(skuId);
    throw new ShopError('OUT_OF_STOCK', `article ${skuId} has fewer than ${units} units`);
  }
  await sql.query(
    'INSERT INTO shop_activity (activity_id, sku_id, units, per_user) VALUES ($1, $2, $3, $4)',
    [activityId, skuId, units, perUser],
  );
  await activityStock.create(sql, { item: itemOf(activityId), units });
  return { activityId, skuId, units, perUser };
}

async function buy(
  { activityId, userId }: Purchase,
  { database }: Store,
  sql: SqlSession,
): Promise<Purchased> {
  const text = 'SELECT sku_id, per_user FROM shop_activity WHERE activity_id = $1';
  const activity = await firstRow(sql, text, [activityId]);
  if (activity === undefined) {
    throw new ShopError('ACTIVITY_NOT_FOUND', `there is no activity ${activityId}`);
  }
  const skuId = String(activity['sku_id']);
  const { orderNo } = await writeOrder(
    { userId, skuId, quantity: 1, clientKey: `activity/${activityId}`, activityId },
    sql,
  );
  // The hot rows come last, so that they are held shortest.
  const held = await activityStock.reserve(sql, {
    reservationId: reservationOf(orderNo),
    item: itemOf(activityId),
    units: 1,
    holder: userId,
    quota: Number(activity['per_user']),
    holdMs: holdMsMax, // The order's own time to pay ends the hold, not the sweeper.
  });
  if (held.kind === 'held') return { orderNo };
  // Only a hint that saves others the search; it waits on its own connection until we have ended.
  activityStock.noteSoldOut(database, held).catch(() => undefined);
  throw new ShopError('SOLD_OUT', `activity ${activityId} is sold out for ${userId}`);
}
