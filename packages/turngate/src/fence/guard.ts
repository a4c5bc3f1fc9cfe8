/**
 * The receiving side: a service, a device or a file server that is told a fence with each request
 * and lets only the newest holder through.
 */
import type { SqlDatabase } from '../contract/sql-session.ts';
import { functionOption } from '../core/option.ts';
import { type FenceMarks, fenceMarks } from './fence-marks.ts';
import { checkFence, checkResource, staleError } from './fence-number.ts';

/** Which of the two steps a request is. */
export type FenceVerb = 'enter' | 'check';

/** One request as a guard sees it. */
export interface FencedRequest {
  /** What is protected, 1 to 255 bytes. Say it yourself; do not take it from the request. */
  readonly resource: string;
  /** `enter` for the first request of a hold, before its first read; `check` for all later ones. */
  readonly verb: FenceVerb;
  readonly fence: bigint;
}

/** Lets the newest holder through. */
export interface FenceGuard<Context> {
  /**
   * Runs `body` if the request may pass. The mark cannot be raised by another while the body runs.
   *
   * @throws FENCE_STALE when a newer holder has entered, or a `check` comes without an `enter`
   */
  run<T>(request: FencedRequest, body: (context: Context) => Promise<T>): Promise<T>;
}

/**
 * A guard with its marks in a SQL database: each request is one transaction, the mark is locked in it
 * and `body` writes through it, so the check and the write are one.
 *
 * Create the table first: `fenceMarks().createTable(dialect)`.
 */
export function sqlFenceGuard<Tx>(
  database: Pick<SqlDatabase<Tx>, 'transaction'>,
  marks: FenceMarks = fenceMarks(),
): FenceGuard<Tx> {
  return {
    async run({ resource, verb, fence }, body) {
      functionOption('body', body);
      return await database.transaction(async (session, tx) => {
        await marks[verb](session, { resource, fence });
        return await body(tx);
      });
    },
  };
}

interface Gatekeeper {
  mark: bigint | undefined;
  /** The last body of this resource; bodies run one after another. */
  tail: Promise<unknown>;
}

/**
 * A guard for what this process alone controls: a port, a device, a local file. Bodies of one
 * resource run one after another.
 *
 * Not promised: anything after a restart, which forgets the marks. A `check` is then refused until
 * somebody enters, but an old holder may be the first to do so: where that matters, keep the marks
 * in a database. One mark per resource stays in memory for the life of the guard.
 */
export function memoryFenceGuard(): FenceGuard<void> {
  const keepers = new Map<string, Gatekeeper>();
  return {
    async run({ resource, verb, fence }, body) {
      checkResource(resource);
      checkFence(fence);
      functionOption('body', body);
      let keeper = keepers.get(resource);
      if (keeper === undefined) {
        keeper = { mark: undefined, tail: Promise.resolve() };
        keepers.set(resource, keeper);
      }
      const mine = keeper;
      const result = mine.tail.then(async () => {
        admit(mine, { resource, verb, fence });
        return await body();
      });
      mine.tail = result.catch(() => undefined); // The next body does not care how this one ended.
      return await result;
    },
  };
}

function admit(keeper: Gatekeeper, { resource, verb, fence }: FencedRequest): void {
  const { mark } = keeper;
  const stale = verb === 'enter' ? mark !== undefined && mark > fence : mark !== fence;
  if (stale) throw staleError(`"${resource}"`, fence, mark);
  keeper.mark = fence;
}
