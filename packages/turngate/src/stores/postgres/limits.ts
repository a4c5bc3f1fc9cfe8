/** A driver whose calls end: a server that does not answer is a server that is not there. */
import { together } from '../../contract/sql-together.ts';
import { Deadlines } from '../../runtime/deadlines.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { Patience, PostgresDriver, PostgresTransaction } from './driver.ts';
import type { Step } from './statements.ts';

/** Counted as a lost connection, because nobody knows what the server did. */
class NoAnswer extends Error {
  override readonly name = 'NoAnswer';
  readonly code = '08006';
}

/** Ends every call of ours after `limitMs`. The handler's own statements are the handler's. */
export function withLimits<Tx>(
  driver: PostgresDriver<Tx>,
  runtime: Runtime,
  limitMs: number,
): PostgresDriver<Tx> {
  const deadlines = new Deadlines(runtime, limitMs);
  const limited = <T>(call: Promise<T>, patience?: Patience): Promise<T> =>
    deadlines.limit(call, () => {
      patience?.giveUp?.();
      return new NoAnswer(`no answer from PostgreSQL within ${limitMs} ms`);
    });
  return {
    name: driver.name,
    shared: driver.shared,
    async begin(steps) {
      const patience: Patience = {};
      const call = driver.begin(steps, patience);
      try {
        const { transaction, answers } = await limited(call, patience);
        return { transaction: limitedTransaction(transaction, limited), answers };
      } catch (error) {
        // A connection that comes too late goes straight back.
        if (error instanceof NoAnswer)
          call.then(
            (late) => late.transaction.rollback(),
            () => {},
          );
        throw error;
      }
    },
    run(steps) {
      const patience: Patience = {};
      return limited(driver.run(steps, patience), patience);
    },
    adopt: (tx) => driver.adopt(tx),
    ...(driver.enter === undefined ? {} : { enter: driver.enter }),
  };
}

function limitedTransaction<Tx>(
  transaction: PostgresTransaction<Tx>,
  limited: <T>(call: Promise<T>) => Promise<T>,
): PostgresTransaction<Tx> {
  const orDestroy = async <T>(call: Promise<T>): Promise<T> => {
    try {
      return await limited(call);
    } catch (error) {
      if (error instanceof NoAnswer) transaction.destroy();
      throw error;
    }
  };
  const { session } = transaction;
  return {
    tx: transaction.tx,
    session: {
      dialect: 'postgres',
      query: (text, values) => session.query(text, values),
      together: (steps) => limited(together(session, steps)),
      batch: (steps) => limited(session.batch(steps)),
      inTransaction: () => session.inTransaction(),
    },
    commit: (steps: readonly Step[]) => orDestroy(transaction.commit(steps)),
    rollback: (reason) => orDestroy(transaction.rollback(reason)).catch(() => false),
    destroy: () => transaction.destroy(),
  };
}
