/**
 * The claim under inbox, stock and barrier: insert first, then look who won. Never "look, then
 * insert", never a failing INSERT, never by how a driver counts rows.
 */
import type {
  SqlAnswer,
  SqlServer,
  SqlSession,
  SqlStep,
  SqlValue,
} from '../contract/sql-session.ts';
import { together } from '../contract/sql-together.ts';
import { sqlNowMs, sqlUpsert } from '../core/sql-text.ts';

/**
 * What all claims of a table have in common. SQL in it may say `{now}`, the server's time in epoch
 * milliseconds.
 */
export interface ClaimShape {
  readonly table: string;
  /** Columns of the unique key. */
  readonly key: readonly string[];
  /** Other columns of a fresh row → SQL, in which `{}` is the next of the claim's values. */
  readonly fresh: Readonly<Record<string, string>>;
  /** What to read back, as text: name → SQL. */
  readonly read?: Readonly<Record<string, string>>;
}

/** One claim. */
export interface Claim {
  /** Values of the key's columns, in order. */
  readonly key: readonly SqlValue[];
  /** One for each `{}`. */
  readonly values: readonly SqlValue[];
  /** Unique to this attempt; column `token` keeps it, and whoever finds its own there has won. */
  readonly token: string;
}

/** Who has it. The row is locked until the transaction ends, in both cases. */
export interface ClaimedRow {
  readonly ours: boolean;
  readonly row: Readonly<Record<string, string | null>>;
}

type Row = SqlAnswer['rows'][number];

/** The texts for one kind of server. */
interface Texts {
  readonly insert: string;
  /** A locking read: at REPEATABLE READ a plain one may not see the row that was in the way. */
  readonly read: string;
  readonly returning: boolean;
}

/** Claims rows of one table. Made once: the texts are not built anew for each claim. */
export class ClaimTable {
  private readonly shape: ClaimShape;
  private readonly names: readonly string[];
  private readonly known = new Map<string, Texts>();

  constructor(shape: ClaimShape) {
    this.shape = shape;
    this.names = Object.keys(shape.read ?? {});
  }

  /**
   * Claims a row in the caller's transaction. While another transaction holds an uncommitted row of the
   * same key, it waits for its end. Run it early and at READ COMMITTED: at REPEATABLE READ PostgreSQL
   * answers 40001 when the other was faster, and the whole transaction has to be tried again.
   */
  async claim(sql: SqlSession, claim: Claim): Promise<ClaimedRow> {
    return await this.claimed(sql, claim, await together(sql, this.steps(sql, claim)));
  }

  /** What a claim sends, for who has more to send in the same trip. */
  steps(server: SqlServer, { key, values, token }: Claim): readonly SqlStep[] {
    const { insert, read, returning } = this.textsFor(server);
    const first = { text: insert, values: [...key, ...values, token] };
    return returning ? [first] : [first, { text: read, values: key }];
  }

  /** Who has it, by the answers to {@link steps}; asks once more where they do not tell. */
  async claimed(
    sql: SqlSession,
    { key, token }: Claim,
    answers: readonly SqlAnswer[],
  ): Promise<ClaimedRow> {
    const found = answers.at(-1)?.rows[0] ?? (await this.read(sql, key)) ?? [];
    return { ours: found[0] === token, row: this.named(found) };
  }

  /** The row as it stands, locked; nothing is claimed where there is none. */
  async locked(sql: SqlSession, key: Claim['key']): Promise<ClaimedRow['row'] | undefined> {
    const found = await this.read(sql, key);
    return found && this.named(found);
  }

  private async read(sql: SqlSession, key: Claim['key']): Promise<Row | undefined> {
    const [answer] = await together(sql, [{ text: this.textsFor(sql).read, values: key }]);
    return answer?.rows[0];
  }

  private named(found: Row): ClaimedRow['row'] {
    const row: Record<string, string | null> = {};
    for (const [i, name] of this.names.entries()) row[name] = found[i + 1] ?? null;
    return row;
  }

  private textsFor(server: SqlServer): Texts {
    // A row that comes back is locked, and in MariaDB it may be the one that was in the way.
    const returning = server.returning ?? server.dialect !== 'mysql';
    const kind = returning ? server.dialect : `${server.dialect} without rows`;
    let texts = this.known.get(kind);
    if (texts === undefined) {
      texts = this.build(server.dialect, returning);
      this.known.set(kind, texts);
    }
    return texts;
  }

  private build(dialect: SqlServer['dialect'], returning: boolean): Texts {
    const { table, key, fresh, read = {} } = this.shape;
    const timed = (text: string): string => text.replaceAll('{now}', sqlNowMs[dialect]);
    const columns = {
      ...Object.fromEntries(key.map((name) => [name, '{}'])),
      ...fresh,
      token: '{}',
    };
    let place = 0;
    const texts = Object.values(columns).map((text) => text.replaceAll('{}', () => `$${++place}`));
    const back = ['token', ...Object.entries(read).map(([name, text]) => `${text} AS ${name}`)];
    const where = key.map((column, i) => `${column} = $${i + 1}`).join(' AND ');
    const forUpdate = dialect === 'sqlite' ? '' : 'FOR UPDATE';
    const insert = `INSERT INTO ${table} (${Object.keys(columns).join(', ')})
     VALUES (${timed(texts.join(', '))})
     ${sqlUpsert(dialect, key, [])}
     ${returning ? `RETURNING ${timed(back.join(', '))}` : ''}`;
    const select = `SELECT ${timed(back.join(', '))} FROM ${table} WHERE ${where} ${forUpdate}`;
    return { insert, read: select, returning };
  }
}
