/** What can be lost, in the words of the reports. All are counted by the audit at the end of a storm. */

export interface LossWord {
  /** Letter of the table on the terminal. */
  readonly letter: string;
  readonly one: string;
  readonly many: string;
  readonly meaning: string;
}

export const lossWords = {
  extraCharges: {
    letter: 'C',
    one: 'double charge',
    many: 'double charges',
    meaning: 'money taken again for an order that was charged before',
  },
  chargedAfterCancel: {
    letter: 'X',
    one: 'charge on a cancelled order',
    many: 'charges on cancelled orders',
    meaning: 'money taken for an order whose cancellation had been confirmed',
  },
  chargedUnsold: {
    letter: 'U',
    one: 'charge without a sale',
    many: 'charges without a sale',
    meaning: 'money taken for an order that is still unpaid in the end',
  },
  uncharged: {
    letter: 'G',
    one: 'order given away',
    many: 'orders given away',
    meaning: 'order marked paid without a charge',
  },
  oversold: {
    letter: 'O',
    one: 'unit oversold',
    many: 'units oversold',
    meaning: 'orders paid beyond the stock there was',
  },
  stockDrift: {
    letter: 'S',
    one: 'unit of stock off',
    many: 'units of stock off',
    meaning: 'initial stock − current stock differs from the number of paid orders',
  },
  ordersLost: {
    letter: 'L',
    one: 'order lost',
    many: 'orders lost',
    meaning: 'unpaid in the end though the customer kept asking and there was stock',
  },
  falseSuccess: {
    letter: 'F',
    one: 'false success',
    many: 'false successes',
    meaning: 'the customer was told "paid", and the order is not paid',
  },
} as const satisfies Record<string, LossWord>;

export type LossKind = keyof typeof lossWords;

export type Losses = Readonly<Record<LossKind, number>>;

export const lossKinds = Object.keys(lossWords) as LossKind[];

export const noLosses: Losses = Object.fromEntries(lossKinds.map((kind) => [kind, 0])) as Losses;

export function totalLosses(losses: Losses): number {
  return lossKinds.reduce((sum, kind) => sum + losses[kind], 0);
}

export function addLosses(a: Losses, b: Losses): Losses {
  return Object.fromEntries(lossKinds.map((kind) => [kind, a[kind] + b[kind]])) as Losses;
}

/** Like `4 double charges, 1 order lost`; empty for none. */
export function lossesInWords(losses: Losses): string {
  return lossKinds
    .filter((kind) => losses[kind] > 0)
    .map(
      (kind) =>
        `${losses[kind]} ${losses[kind] === 1 ? lossWords[kind].one : lossWords[kind].many}`,
    )
    .join(', ');
}
