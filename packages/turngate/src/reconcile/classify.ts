/** From what three sides say about one key to one finding, or none. Pure. */
import type { FindingCode } from './finding.ts';
import type { Group, Line } from './line.ts';
import { groupLinesMax } from './merge.ts';

/** What counts as equal, and which lines belong to the day. */
export interface Rules {
  /** The business day in the channel's zone, half-open, epoch milliseconds. */
  readonly fromMs: number;
  readonly toMs: number;
  /** Lines this close to the day's edges may belong to the neighbour's bill. */
  readonly marginMs: number;
  /** Differences that are let pass, for fees only: both limits must hold. */
  readonly feeTolerance: { readonly minor: bigint; readonly basisPoints: number };
  /** A payment that is still pending after this long is reported. */
  readonly staleAfterMs: number;
  /** Keys matched by the neighbour's run: they are used up. */
  readonly consumed: ReadonlySet<string>;
}

/** What was found for one key. */
export interface Finding {
  readonly code: FindingCode;
  readonly amountMinor: bigint;
  readonly detail: string;
  /** The lines that are left without their other half: they go to the pool, or to a second look. */
  readonly alone?: { readonly side: 'flow' | 'bill'; readonly line: Line };
}

/** Undefined: nothing of it belongs to this day. */
export function classify(group: Group, rules: Rules): Finding | undefined {
  const { order, flow, bill } = group;
  if (Math.max(order.length, flow.length, bill.length) > groupLinesMax) {
    return finding('HUGE_GROUP', 0n, `${order.length}/${flow.length}/${bill.length} lines`);
  }
  if (group.kind === 'FEE') return classifyFee(group, rules);
  if (group.kind !== 'PAY' && group.kind !== 'REFUND') {
    return finding('UNKNOWN_KIND', (bill[0] ?? flow[0] ?? order[0])?.amountMinor ?? 0n, group.kind);
  }
  const billed = bill.filter(({ status }) => status === 'SUCCESS');
  if (billed.length > 1) {
    return finding('DUP_CHANNEL', sumAfterFirst(billed), `billed ${billed.length} times`);
  }
  const [line] = billed;
  if (line !== undefined && rules.consumed.has(`${group.kind}\n${group.key}`)) {
    return finding('DUP_CHANNEL', line.amountMinor, 'billed again after the day before');
  }
  const booked = flow.filter(({ status }) => status === 'SUCCESS');
  if (booked.length > 1) {
    return finding('DUP_LOCAL', sumAfterFirst(booked), `booked ${booked.length} times`);
  }
  return group.kind === 'PAY'
    ? classifyPayment(group, line, booked[0], rules)
    : classifyRefund(group, line, booked[0], rules);
}

function classifyPayment(
  { order, flow, bill }: Group,
  billed: Line | undefined,
  booked: Line | undefined,
  rules: Rules,
): Finding | undefined {
  const [expected] = order;
  if (billed === undefined && booked === undefined) {
    const [pending] = flow;
    if (expected?.status === 'PAID') {
      return finding('MISSING_FLOW', expected.amountMinor, 'paid order without a payment');
    }
    return pending?.status === 'PENDING' && rules.toMs - pending.atMs > rules.staleAfterMs
      ? finding('STALE_PENDING', pending.amountMinor, 'pending for too long')
      : undefined;
  }
  if (billed === undefined) return bookedOnly(booked as Line, bill, rules, 'MISSING_CHANNEL');
  if (booked === undefined) {
    if (flow.length > 0 || expected !== undefined) {
      const closed = expected?.status === 'CLOSED';
      return finding(
        closed ? 'CLOSED_LOCAL_PAID' : 'PENDING_LOCAL_PAID',
        billed.amountMinor,
        `billed, here ${flow[0]?.status ?? expected?.status}`,
      );
    }
    return billedOnly(billed, rules, 'MISSING_LOCAL');
  }
  const unequal = compareHalves(booked, billed);
  if (unequal !== undefined) return unequal;
  if (expected === undefined) {
    return finding('MISSING_ORDER', booked.amountMinor, 'payment without an order');
  }
  if (expected.status === 'CLOSED') {
    return finding('CLOSED_LOCAL_PAID', booked.amountMinor, 'order is closed');
  }
  if (expected.status === 'UNPAID') {
    return finding('PENDING_LOCAL_PAID', booked.amountMinor, 'order still waits for its money');
  }
  return compareHalves(expected, billed) ?? finding('MATCHED', billed.amountMinor, '');
}

function classifyRefund(
  { flow, bill }: Group,
  billed: Line | undefined,
  booked: Line | undefined,
  rules: Rules,
): Finding | undefined {
  const [any] = flow;
  const quota = any?.quota;
  if (quota !== undefined && quota.spentMinor > quota.capturedMinor) {
    const overMinor = quota.spentMinor - quota.capturedMinor;
    return finding('OVER_REFUND', overMinor, 'refunds exceed what was captured');
  }
  if (billed === undefined) {
    if (booked !== undefined) return bookedOnly(booked, bill, rules, 'REFUND_MISSING_CHANNEL');
    return any?.status === 'PENDING' && rules.toMs - any.atMs > rules.staleAfterMs
      ? finding('STALE_PENDING', any.amountMinor, 'refund pending for too long')
      : undefined;
  }
  if (booked === undefined) {
    return any === undefined
      ? billedOnly(billed, rules, 'REFUND_MISSING_LOCAL')
      : finding('PENDING_LOCAL_PAID', billed.amountMinor, `refund billed, here ${any.status}`);
  }
  return compareHalves(booked, billed) ?? finding('MATCHED', billed.amountMinor, '');
}

function classifyFee({ flow, bill }: Group, rules: Rules): Finding | undefined {
  const [expected] = flow;
  const [billed] = bill;
  const difference = (billed?.amountMinor ?? 0n) - (expected?.amountMinor ?? 0n);
  if (difference === 0n) return finding('MATCHED', billed?.amountMinor ?? 0n, '');
  const size = difference < 0n ? -difference : difference;
  const base = expected?.amountMinor ?? 0n;
  const { minor, basisPoints } = rules.feeTolerance;
  const passes =
    size <= minor && size * 10_000n <= (base < 0n ? -base : base) * BigInt(basisPoints);
  return finding(passes ? 'MATCHED_TOLERANCE' : 'FEE_MISMATCH', difference, 'fee differs');
}

/** Ours, and the bill does not have it. */
function bookedOnly(
  line: Line,
  bill: readonly Line[],
  rules: Rules,
  code: 'MISSING_CHANNEL' | 'REFUND_MISSING_CHANNEL',
): Finding | undefined {
  const [other] = bill;
  if (other !== undefined) {
    return finding('PAID_LOCAL_FAILED', line.amountMinor, `booked here, ${other.status} there`);
  }
  // Beyond the day's edges lines are read only so that the bill's can find them.
  if (line.atMs < rules.fromMs || line.atMs >= rules.toMs) return undefined;
  return nearEdge(line, rules) ? alone('POOLED_CUTOFF', 'flow', line) : alone(code, 'flow', line);
}

/** The bill has it, and we know nothing of it. */
function billedOnly(
  line: Line,
  rules: Rules,
  code: 'MISSING_LOCAL' | 'REFUND_MISSING_LOCAL',
): Finding {
  return nearEdge(line, rules) ? alone('POOLED_CUTOFF', 'bill', line) : alone(code, 'bill', line);
}

function nearEdge({ atMs }: Line, { fromMs, toMs, marginMs }: Rules): boolean {
  return atMs < fromMs + marginMs || atMs >= toMs - marginMs;
}

function compareHalves(ours: Line, theirs: Line): Finding | undefined {
  if (ours.currency !== theirs.currency) {
    return finding(
      'CURRENCY_MISMATCH',
      theirs.amountMinor,
      `${ours.currency}, billed ${theirs.currency}`,
    );
  }
  const difference = theirs.amountMinor - ours.amountMinor;
  if (difference === 0n) return undefined;
  return finding('AMOUNT_MISMATCH', difference, difference > 0n ? 'billed more' : 'billed less');
}

function sumAfterFirst(lines: readonly Line[]): bigint {
  return lines.slice(1).reduce((sum, { amountMinor }) => sum + amountMinor, 0n);
}

function finding(code: FindingCode, amountMinor: bigint, detail: string): Finding {
  return { code, amountMinor, detail };
}

function alone(code: FindingCode, side: 'flow' | 'bill', line: Line): Finding {
  return {
    code,
    amountMinor: line.amountMinor,
    detail: `only the ${side} side has it`,
    alone: { side, line },
  };
}
