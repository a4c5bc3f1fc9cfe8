/** Reconciliation: three sides of the same money, compared and classified. */

export { type BillFormat, parseBill } from './bill.ts';
export { type Break, type FindingCode, findingTable, type Severity } from './finding.ts';
export {
  compareLines,
  type Line,
  type LinePlace,
  type LineSource,
  type LineStatus,
  type Side,
} from './line.ts';
export { parseAmount } from './money.ts';
export { type ReconcileInput, type ReconcileResult, reconcile } from './reconcile.ts';
export { ReconcileStore } from './reconcile-store.ts';
export {
  type RepairAction,
  type Repaired,
  type RepairName,
  type RepairOptions,
  repairBreaks,
} from './repair.ts';
export { type Report, reportCsv, reportHtml, reportJson } from './report.ts';
