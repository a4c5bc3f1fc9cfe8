/** What two databases say about checkouts: read from the tables, nothing asked of the services. */
import type { SqlDatabase } from 'turngate/contract';
import { openDatabase } from '../../dist/database/open.js';

/** A checkout as its coordinator recorded it. */
export interface Ending {
  readonly checkoutNo: string;
  readonly state: string;
  readonly attempts: number;
  readonly failures: number;
  readonly error: string | null;
  /** Undefined where nothing was told yet. */
  readonly gid: string | undefined;
}

export interface Books {
  readonly endings: readonly Ending[];
  /** States of the branches by gid, those of both databases, in the order of their names. */
  readonly branches: ReadonlyMap<string, readonly string[]>;
  readonly money: { readonly balances: number; readonly held: number; readonly paid: number };
  readonly units: { readonly left: number; readonly held: number; readonly sold: number };
  readonly coupons: { readonly redeemed: number; readonly rows: number };
}

type ReadRows = (text: string) => Promise<readonly Record<string, unknown>[]>;

/** Both databases, open until `close`. */
export function openBooks([moneyUrl, goodsUrl]: readonly [string, string]) {
  const sides = [moneyUrl, goodsUrl].map((url) => openDatabase(url, () => undefined));
  const readerOf =
    ({ query }: SqlDatabase<unknown>): ReadRows =>
    async (text) =>
      (await query(text, [])).rows;
  const [money, goods] = sides.map(({ database }) => readerOf(database)) as [ReadRows, ReadRows];
  return {
    /** How many checkouts are on their way, on any side. */
    async open(): Promise<number> {
      const coordinator = `SELECT count(*) AS n FROM turngate_staged
        WHERE state NOT IN ('done', 'refused', 'released', 'parked')`;
      const tried = "SELECT count(*) AS n FROM turngate_branch WHERE state = 'TRIED'";
      const counts = [await money(coordinator), await money(tried), await goods(tried)];
      return counts.reduce((sum, [row]) => sum + Number(row?.['n']), 0);
    },
    async read(): Promise<Books> {
      return {
        endings: (await money(endingsText)).map(endingOf),
        branches: branchesOf([...(await money(branchText)), ...(await goods(branchText))]),
        money: numbers(await money(moneyText)) as Books['money'],
        units: numbers(await goods(unitsText)) as Books['units'],
        coupons: numbers(await money(couponsText)) as Books['coupons'],
      };
    },
    async close(): Promise<void> {
      await Promise.all(sides.map((side) => side.end()));
    },
  };
}

const endingsText = `SELECT record_key, state, attempt, failures, error, result
  FROM turngate_staged WHERE operation = 'checkout'`;
const branchText = 'SELECT gid, branch, state FROM turngate_branch';
const moneyText = `SELECT
  (SELECT coalesce(sum(balance_minor), 0) FROM shop_account) AS balances,
  (SELECT coalesce(sum(amount_minor), 0) FROM shop_checkout WHERE state = 'HELD') AS held,
  (SELECT coalesce(sum(amount_minor), 0) FROM shop_checkout WHERE state = 'CONFIRMED') AS paid`;
const unitsText = `SELECT coalesce(sum(units_left), 0) AS units_left,
  coalesce(sum(units_held), 0) AS held, coalesce(sum(units_sold), 0) AS sold FROM shop_depot`;
const couponsText = `SELECT (SELECT coalesce(sum(redeemed), 0) FROM shop_coupon) AS redeemed,
  (SELECT count(*) FROM shop_coupon_redemption) AS redemptions`;
const renamed: Readonly<Record<string, string>> = { units_left: 'left', redemptions: 'rows' };

function numbers([row]: readonly Record<string, unknown>[]): Record<string, number> {
  return Object.fromEntries(
    Object.entries(row ?? {}).map(([name, value]) => [renamed[name] ?? name, Number(value)]),
  );
}

function endingOf(row: Record<string, unknown>): Ending {
  const gid = /"([0-9a-v]{10}-[\w-]+)"/.exec(String(row['result'] ?? ''))?.[1];
  return {
    checkoutNo: String(row['record_key']),
    state: String(row['state']),
    attempts: Number(row['attempt']),
    failures: Number(row['failures']),
    error: (row['error'] as string | null) ?? null,
    gid,
  };
}

function branchesOf(rows: readonly Record<string, unknown>[]): Map<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const { gid, branch, state } of rows) {
    const states = found.get(String(gid)) ?? [];
    states.push(`${branch} ${state}`);
    found.set(String(gid), states.sort());
  }
  return found;
}
