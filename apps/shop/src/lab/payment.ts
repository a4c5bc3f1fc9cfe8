/** What every implementation in the lab is: something that takes the payment of an order. */

/** A customer's request. Each implementation decides which of the two it trusts. */
export interface PayRequest {
  /** The idempotency key the client sent. */
  readonly requestKey: string;
  readonly orderNo: string;
}

/** `failed` says nothing about the effect: the client has to ask again. */
export type Answer =
  | { readonly kind: 'paid' }
  | { readonly kind: 'already' }
  | { readonly kind: 'refused'; readonly why: string }
  | { readonly kind: 'failed'; readonly why: string };

/** Places in a payment where a storm can make it throw or have its process killed. */
export type Point = 'after-charge' | 'before-commit' | 'after-commit';

/** What the storm does to one attempt. */
export interface Trial {
  /** The time real code spends between reading and writing, such as the call to a provider. */
  work(): Promise<void>;
  /** Marks a place the attempt has come to. */
  at(point: Point): Promise<void>;
}

export interface Payer {
  pay(request: PayRequest, trial: Trial): Promise<Answer>;
}

/** Thrown to leave a transaction with a business "no". */
export class Refused extends Error {
  override readonly name = 'Refused';
}

/** Turns a business "no" into its answer; everything else stays an error. */
export function refusalOf(error: unknown): Answer {
  if (error instanceof Refused) return { kind: 'refused', why: error.message };
  throw error;
}
