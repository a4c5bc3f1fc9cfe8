/** Small guards inside a transaction: vouchers for side actions, optimistic versions. */

export { updateVersion, type VersionedChange, type VersionedResult } from './version.ts';
export { once, purgeVouchers, type Voucher } from './voucher.ts';
