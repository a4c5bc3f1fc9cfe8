/** For operators: what is stored, what may be done to it, who did it; and the clean-up job. */

export type { ActAnswer } from './acts.ts';
export {
  type Admin,
  type AdminOptions,
  createAdmin,
  type LocksAdmin,
  type RecordsAdmin,
  type ShownRecord,
  type ShownStaged,
  type ShownStep,
  type ShowOptions,
  type StagedAdmin,
} from './admin.ts';
export {
  type AuditEntry,
  type AuditFilter,
  type AuditLine,
  type AuditLog,
  type AuditOutcome,
  type AuditPage,
  type AuditTargetKind,
  memoryAudit,
  type SqlAuditOptions,
  sqlAudit,
} from './audit.ts';
export { type CleanUpOptions, type CleanUpReport, cleanUp, type ResultRetention } from './clean.ts';
export { type AdminHandlerOptions, adminHandler } from './handler.ts';
export { plainJson } from './plain.ts';
export type { AdminRecordStore, AdminStagedStore } from './stores.ts';
