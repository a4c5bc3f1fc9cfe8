/** Hot stock: segments, reservations, quotas, an authoritative "sold out". */

export { rebalance } from './rebalance.ts';
export type { Part } from './segments.ts';
export {
  createStock,
  type ReservationState,
  type Reserve,
  type ReserveResult,
  type SettleResult,
  type Stock,
  type StockItem,
  type StockState,
} from './stock.ts';
