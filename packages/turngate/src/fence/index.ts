/** The checking side of fencing: enter before the first read, check at each write. */

export {
  type EnteredMark,
  type FencedResource,
  type FenceMarks,
  fenceMarks,
} from './fence-marks.ts';
export { type EnteredRow, type FencedRows, type FencedTable, fencedRows } from './fenced-rows.ts';
export {
  type FencedRequest,
  type FenceGuard,
  type FenceVerb,
  memoryFenceGuard,
  sqlFenceGuard,
} from './guard.ts';
export { fenceHeaderName, formatFence, parseFence } from './http.ts';
export {
  type EnteredKey,
  type RedisFence,
  type RedisFenceOptions,
  redisFence,
} from './redis-fence.ts';
