/** What a comparison can find, how bad it is, and what may be done about it without asking. */

/** All codes: severity and the repair that fits, where one does. */
export const findingTable = {
  MATCHED: { severity: 'none' },
  MATCHED_TOLERANCE: { severity: 'none' },
  POOLED_CUTOFF: { severity: 'info' },
  MISSING_LOCAL: { severity: 'high', repair: 'import-payment' },
  MISSING_CHANNEL: { severity: 'critical', repair: 'query-channel' },
  PENDING_LOCAL_PAID: { severity: 'high', repair: 'replay-callback' },
  CLOSED_LOCAL_PAID: { severity: 'high', repair: 'refund-late' },
  PAID_LOCAL_FAILED: { severity: 'critical' },
  AMOUNT_MISMATCH: { severity: 'critical' },
  CURRENCY_MISMATCH: { severity: 'critical' },
  DUP_CHANNEL: { severity: 'high', repair: 'refund-duplicate' },
  DUP_LOCAL: { severity: 'high' },
  MISSING_ORDER: { severity: 'high' },
  MISSING_FLOW: { severity: 'high' },
  REFUND_MISSING_CHANNEL: { severity: 'critical', repair: 'retry-refund' },
  REFUND_MISSING_LOCAL: { severity: 'critical' },
  OVER_REFUND: { severity: 'critical' },
  FEE_MISMATCH: { severity: 'low' },
  UNKNOWN_KIND: { severity: 'low' },
  STALE_PENDING: { severity: 'mid', repair: 'query-channel' },
  HUGE_GROUP: { severity: 'mid' },
} as const;

/** A stable code. */
export type FindingCode = keyof typeof findingTable;

/** How bad it is. */
export type Severity = 'none' | 'info' | 'low' | 'mid' | 'high' | 'critical';

/** One classified difference. */
export interface Break {
  readonly code: FindingCode;
  readonly severity: Severity;
  readonly kind: string;
  readonly key: string;
  /** What it is about, in minor units; for a mismatch the difference (bill minus ours). */
  readonly amountMinor: bigint;
  readonly currency: string;
  readonly detail: string;
}

/** How bad a finding is. */
export function severityOf(code: FindingCode): Severity {
  return findingTable[code].severity;
}
