/**
 * A checkout over two services: money and coupon here, units in the depot. All three are reserved
 * (try), then confirmed or cancelled together, whoever dies in between.
 */
import type { StagedOperation } from 'turngate';
import { defineTcc, type Participant, type TccOutcome } from 'turngate/saga';
import type { DepotHold } from '../depot/depot.ts';
import { balanceParticipant, couponParticipant } from './checkout-branches.ts';
import type { Store, Tx } from './store.ts';

/** A customer buys units from the depot with the balance. The number is the caller's, per customer. */
export interface CheckoutRequest {
  readonly userId: string;
  readonly checkoutNo: string;
  readonly skuId: string;
  readonly units: number;
  readonly couponId?: string;
}

/** Everything a checkout needs. */
export type Checkout = StagedOperation<Tx, CheckoutRequest, TccOutcome>;

/** Declares it over a depot in this process or behind HTTP. */
export function checkoutOperation(
  store: Store,
  depot: Participant<DepotHold>,
  { leaseMs = 5_000 }: { readonly leaseMs?: number } = {},
): Checkout {
  return store.gate.stagedOperation({
    ...defineTcc<Tx, CheckoutRequest>({
      name: 'checkout',
      scope: ({ userId }) => `user:${userId}`,
      key: ({ checkoutNo }) => checkoutNo,
      leaseMs,
      attemptsMax: 200, // A depot that is away for hours is no reason to park.
      branches: [
        {
          name: 'balance',
          participant: balanceParticipant(store),
          payload: ({ userId, checkoutNo, skuId, units }) => ({ userId, checkoutNo, skuId, units }),
        },
        {
          name: 'stock',
          participant: depot,
          payload: ({ checkoutNo, skuId, units }) => ({ checkoutNo, skuId, units }),
        },
        {
          name: 'coupon',
          participant: couponParticipant(store),
          payload: ({ userId, checkoutNo, couponId = null }) => ({ userId, checkoutNo, couponId }),
        },
      ],
    }),
    keySource: 'checkoutNo in the body, per customer; no header needed',
  });
}
