/** Records whose transactions are an ORM's own. */
import {
  type Attempt,
  type Claim,
  CommitUnknown,
  type RecordStore,
  type Work,
} from '../../contract/record-store.ts';
import type { SqlSession } from '../../contract/sql-session.ts';
import { isTurngateError, TurngateError } from '../../core/errors.ts';
import { functionOption, knownOptions } from '../../core/option.ts';
import { errorChain, isConnectionLost, sqlState } from '../../stores/sql/sql-error.ts';
import { assertAlive } from './alive.ts';

/** How to speak to an ORM's transactions. */
export interface OrmTransactions<Tx> {
  /** The session of an open one: `kyselyTx`, `knexTx`, … */
  readonly session: (tx: Tx) => SqlSession;
  /**
   * Opens one around `body`, commits it when `body` resolves and rolls it back when it rejects. Leave
   * it out when all transactions are yours: then operations are called by `within` only.
   */
  readonly transaction?: <T>(body: (tx: Tx) => Promise<T>) => Promise<T>;
}

/**
 * The same records, with the transactions of an ORM: handlers and `within` get its own handle, and an
 * operation that is called opens a transaction through it. Claim, what the handler writes through the
 * ORM, and result commit together or not at all.
 *
 * @param records the records of the same database: `postgres(pool)`, `mysql(pool)`, `sqlite(db)`; they
 *   read, probe and purge over connections of their own
 * @throws OPTION_INVALID before any I/O
 */
export function ormRecords<Tx>(
  // biome-ignore lint/suspicious/noExplicitAny: whatever its own handles are, none of them is used.
  records: RecordStore<any>,
  orm: OrmTransactions<Tx>,
): RecordStore<Tx> {
  knownOptions('ormRecords()', orm, ['session', 'transaction']);
  functionOption('session', orm.session);
  const { transaction } = orm;
  if (transaction !== undefined) functionOption('transaction', transaction);
  const within = (tx: Tx, claim: Claim, work: Work<Tx>): Promise<Attempt> =>
    records.within(orm.session(tx), claim, () => work(tx));
  const { name, capabilities, admin } = records;
  return {
    name,
    capabilities,
    ...(admin === undefined ? {} : { admin }),
    within,
    read: (id) => records.read(id),
    probe: (claim) => records.probe(claim),
    purge: (limit) => records.purge(limit),
    async attempt(claim, work) {
      if (transaction === undefined) {
        const message = 'these records have no transactions of their own: call within(tx, input)';
        throw new TurngateError('TRANSACTION_REQUIRED', message);
      }
      return await attemptIn(transaction, async (tx) => {
        const attempt = await within(tx, claim, work);
        await assertAlive(orm.session(tx));
        return attempt;
      });
    },
  };
}

async function attemptIn<Tx>(
  transaction: NonNullable<OrmTransactions<Tx>['transaction']>,
  body: (tx: Tx) => Promise<Attempt>,
): Promise<Attempt> {
  let committing = false;
  try {
    return await transaction(async (tx) => {
      const attempt = await body(tx);
      committing = attempt.kind === 'ran';
      return attempt;
    });
  } catch (error) {
    if (isTurngateError(error)) {
      if (error.code === 'TRANSACTION_CONFLICT') return { kind: 'conflict', cause: error };
      throw error;
    }
    if (isConflict(error)) return { kind: 'conflict', cause: error };
    if (committing && isConnectionLost(error)) throw new CommitUnknown(error);
    if (!committing && isConnectionLost(error)) throw unavailable(error);
    throw error;
  }
}

/** Deadlock, serialization, outdated snapshot. */
function isConflict(error: unknown): boolean {
  const state = sqlState(error);
  if (state === '40001' || state === '40P01') return true;
  return [...errorChain(error)].some(
    ({ errno, code }) => errno === 1213 || code === 'SQLITE_BUSY_SNAPSHOT',
  );
}

function unavailable(cause: unknown): TurngateError {
  const message = `the database is not available (${(cause as Error).message})`;
  return new TurngateError('STORE_UNAVAILABLE', message, { cause, retryAfterMs: 1_000 });
}
