/** Coupons and flash sales. */
import type { FastifyInstance } from 'fastify';
import type { ActivityOperations } from '../trade/activities.ts';
import type { CouponOperations } from '../trade/coupons.ts';
import { operationCall } from './operation-call.ts';
import {
  activityBody,
  activityParams,
  buyerBody,
  couponBody,
  couponParams,
  purchaseAnswer,
  redeemBody,
  redemptionAnswer,
} from './schemas.ts';

/** Adds the routes. */
export function promotionRoutes(
  app: FastifyInstance,
  coupons: CouponOperations,
  activities: ActivityOperations,
): void {
  operationCall(app, {
    url: '/api/coupons',
    operation: coupons.create,
    summary: 'Announce a coupon',
    body: couponBody,
    answer: couponBody,
    status: 201,
    input: ({ body }) => body,
    conflict: 'COUPON_CONFLICT',
  });
  operationCall(app, {
    url: '/api/coupons/:couponId/redeem',
    operation: coupons.redeem,
    summary: 'Redeem a coupon',
    params: couponParams,
    body: redeemBody,
    answer: redemptionAnswer,
    status: 200,
    input: ({ params, body }) => ({
      couponId: params['couponId'] as string,
      ...(body as { userId: string; redeemNo?: string }),
    }),
  });
  operationCall(app, {
    url: '/api/activities',
    operation: activities.create,
    summary: 'Announce a flash sale: sets its units aside from the article’s stock',
    body: activityBody,
    answer: activityBody,
    status: 201,
    input: ({ body }) => body,
    conflict: 'ACTIVITY_CONFLICT',
  });
  operationCall(app, {
    url: '/api/activities/:activityId/purchase',
    operation: activities.purchase,
    summary: 'Buy one unit of a flash sale',
    params: activityParams,
    body: buyerBody,
    answer: purchaseAnswer,
    status: 201,
    input: ({ params, body }) => ({
      activityId: params['activityId'] as string,
      ...(body as { userId: string }),
    }),
  });
}
