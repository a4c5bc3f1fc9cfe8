/** What a run keeps in the database: its claim, checkpoints, breaks, pool and edges. */
import type { SqlDatabase, SqlSession, SqlValue } from '../contract/sql-session.ts';
import { TurngateError } from '../core/errors.ts';
import { sqlNowMs, sqlUpsert } from '../core/sql-text.ts';
import { systemRuntime } from '../runtime/runtime.ts';
import type { Comparison, Leftover, Tally } from './compare.ts';
import { type Break, type FindingCode, severityOf } from './finding.ts';
import type { Line, LinePlace } from './line.ts';
import type { Report } from './report.ts';

/** A run may be taken over by another process after this long without a checkpoint. */
const leaseMs = 120_000;
const rowsPerInsert = 200;

/** How a claim ended. */
export type Claimed =
  | { readonly kind: 'busy' }
  | { readonly kind: 'done' }
  | {
      readonly kind: 'ours';
      readonly owner: string;
      /** Resume after this place. */
      readonly after: LinePlace | undefined;
      readonly tally: Tally;
    };

/** The rows of one channel and date. */
export class ReconcileStore {
  private readonly database: SqlDatabase;
  private readonly channel: string;
  private readonly date: string;

  constructor(database: SqlDatabase, channel: string, date: string) {
    this.database = database;
    this.channel = channel;
    this.date = date;
  }

  /** One run per channel and date: the row decides, by the database's clock. */
  async claim(again: boolean): Promise<Claimed> {
    const owner = systemRuntime.randomId();
    return await this.database.transaction(async (sql) => {
      await sql.query(
        `INSERT INTO turngate_recon_run (channel, business_date, state, owner, lease_until_ms, tally)
         VALUES ($1, $2, 'open', '', 0, '[]') ${sqlUpsert(sql.dialect, ['channel', 'business_date'], [])}`,
        [this.channel, this.date],
      );
      const row = (await this.rows(sql, `${runText(sql)} FOR UPDATE`))[0] as Record<
        string,
        unknown
      >;
      if (row['state'] === 'done' && !again) return { kind: 'done' };
      if (row['state'] === 'running' && Number(row['left_ms']) > 0) return { kind: 'busy' };
      const resumed = row['state'] === 'running' && row['after_kind'] != null;
      if (!resumed) await this.forget(sql);
      await sql.query(
        `UPDATE turngate_recon_run SET state = 'running', owner = $3,
           lease_until_ms = ${sqlNowMs[sql.dialect]} + ${leaseMs}
         WHERE channel = $1 AND business_date = $2`,
        [this.channel, this.date, owner],
      );
      return {
        kind: 'ours',
        owner,
        after: resumed
          ? { kind: String(row['after_kind']), key: String(row['after_key']) }
          : undefined,
        tally: resumed ? tallyFrom(String(row['tally'])) : new Map(),
      };
    });
  }

  /** Keeps what the stretch found, together with the place from which to go on. */
  async checkpoint(
    owner: string,
    comparison: Comparison,
    place: LinePlace | undefined,
  ): Promise<void> {
    const { breaks, leftovers, edgeKeys, settled } = comparison.nextStretch();
    await this.database.transaction(async (sql) => {
      await this.hold(sql, owner, comparison.tally, place);
      await this.writeBreaks(sql, breaks);
      await this.insert(
        sql,
        'turngate_recon_left',
        leftovers.map((one) => this.leftRow(one)),
      );
      const edges = edgeKeys.map((key) => [this.channel, this.date, key]);
      await this.insert(sql, 'turngate_recon_edge', edges);
      for (const { kind, key } of settled) {
        await sql.query(
          'DELETE FROM turngate_recon_pool WHERE channel = $1 AND line_kind = $2 AND line_key = $3',
          [this.channel, kind, key],
        );
      }
    });
  }

  /** Ends the run: the pool for tomorrow, what is not seen any more resolved. */
  async finish(owner: string, comparison: Comparison, pooled: readonly Leftover[]): Promise<void> {
    const { breaks } = comparison.nextStretch();
    await this.database.transaction(async (sql) => {
      await this.hold(sql, owner, comparison.tally, undefined);
      await this.writeBreaks(sql, breaks);
      await sql.query('DELETE FROM turngate_recon_pool WHERE channel = $1', [this.channel]);
      await this.insert(
        sql,
        'turngate_recon_pool',
        pooled.map((one) => this.poolRow(one)),
      );
      await sql.query(
        `UPDATE turngate_recon_break SET state = 'RESOLVED_BY_DATA'
         WHERE channel = $1 AND first_date = $2 AND last_run <> $3 AND state = 'OPEN'`,
        [this.channel, this.date, owner],
      );
      await sql.query(
        `UPDATE turngate_recon_run SET state = 'done', finished_at_ms = ${sqlNowMs[sql.dialect]}
         WHERE channel = $1 AND business_date = $2 AND owner = $3`,
        [this.channel, this.date, owner],
      );
    });
  }

  /** Lets another process go on at once. */
  async letGo(owner: string): Promise<void> {
    await this.database
      .query(
        `UPDATE turngate_recon_run SET lease_until_ms = 0
         WHERE channel = $1 AND business_date = $2 AND owner = $3 AND state = 'running'`,
        [this.channel, this.date, owner],
      )
      .catch(() => undefined); // The lease ends by itself; the first error is the news.
  }

  /** Lines earlier runs left. */
  async pool(): Promise<readonly Leftover[]> {
    const { rows } = await this.database.query(
      'SELECT line, since_date FROM turngate_recon_pool WHERE channel = $1',
      [this.channel],
    );
    return rows.map(leftoverFrom);
  }

  /** What this run has left so far, over all its checkpoints. */
  async leftovers(): Promise<readonly Leftover[]> {
    const { rows } = await this.database.query(
      'SELECT line, since_date FROM turngate_recon_left WHERE channel = $1 AND business_date = $2',
      [this.channel, this.date],
    );
    return rows.map(leftoverFrom);
  }

  /** Keys the days before and after have matched near their edges. */
  async neighbourEdges(): Promise<ReadonlySet<string>> {
    const dayMs = Date.parse(`${this.date}T00:00:00Z`);
    const [before, after] = [-1, 1].map((days) =>
      new Date(dayMs + days * 86_400_000).toISOString().slice(0, 10),
    ) as [string, string];
    const { rows } = await this.database.query(
      'SELECT edge_key FROM turngate_recon_edge WHERE channel = $1 AND business_date IN ($2, $3)',
      [this.channel, before, after],
    );
    return new Set(rows.map((row) => String(row['edge_key'])));
  }

  /** The finished run. @throws RECONCILIATION_NOT_FOUND */
  async report(): Promise<Report> {
    const [run] = (
      await this.database.query(
        'SELECT state, tally, owner FROM turngate_recon_run WHERE channel = $1 AND business_date = $2',
        [this.channel, this.date],
      )
    ).rows;
    if (run?.['state'] !== 'done') {
      const message = `there is no finished reconciliation of ${this.channel} for ${this.date}`;
      throw new TurngateError('RECONCILIATION_NOT_FOUND', message);
    }
    const { rows } = await this.database.query(
      `SELECT code, line_kind, line_key, amount_minor, currency, detail FROM turngate_recon_break
       WHERE channel = $1 AND last_run = $2 ORDER BY line_kind, line_key, code`,
      [this.channel, String(run['owner'])],
    );
    const tally = tallyFrom(String(run['tally']));
    return {
      channel: this.channel,
      date: this.date,
      counts: Object.fromEntries([...tally].map(([code, { count }]) => [code, count])),
      sums: Object.fromEntries(
        [...tally].map(([code, { sums }]) => [code, Object.fromEntries(sums)]),
      ),
      breaks: rows.map(breakFrom),
    };
  }

  private async hold(
    sql: SqlSession,
    owner: string,
    tally: Tally,
    place: LinePlace | undefined,
  ): Promise<void> {
    const { affectedRows } = await sql.query(
      `UPDATE turngate_recon_run SET tally = $4, after_kind = $5, after_key = $6,
         lease_until_ms = ${sqlNowMs[sql.dialect]} + ${leaseMs}
       WHERE channel = $1 AND business_date = $2 AND owner = $3 AND state = 'running'`,
      [this.channel, this.date, owner, tallyText(tally), place?.kind ?? null, place?.key ?? null],
    );
    if (affectedRows > 0) return;
    throw new TurngateError('LEASE_LOST', 'another process has taken this reconciliation over');
  }

  private async forget(sql: SqlSession): Promise<void> {
    for (const table of ['turngate_recon_left', 'turngate_recon_edge']) {
      const text = `DELETE FROM ${table} WHERE channel = $1 AND business_date = $2`;
      await sql.query(text, [this.channel, this.date]);
    }
    await sql.query(
      `UPDATE turngate_recon_run SET after_kind = NULL, after_key = NULL, tally = '[]'
       WHERE channel = $1 AND business_date = $2`,
      [this.channel, this.date],
    );
  }

  private async writeBreaks(sql: SqlSession, breaks: readonly Break[]): Promise<void> {
    const owner = (await this.rows(sql, runText(sql)))[0]?.['owner'] as string;
    const rows = breaks.map(({ code, kind, key, amountMinor, currency, detail }) => [
      this.channel,
      kind,
      key,
      code,
      amountMinor.toString(),
      currency,
      detail,
      'OPEN',
      this.date,
      owner,
    ]);
    await this.insert(
      sql,
      'turngate_recon_break (channel, line_kind, line_key, code, amount_minor, currency, detail, state, first_date, last_run)',
      rows,
      sqlUpsert(
        sql.dialect,
        ['channel', 'line_kind', 'line_key', 'code'],
        ['amount_minor', 'currency', 'detail', 'last_run', 'state'],
      ),
    );
  }

  /** Rows whose key is there already are left as they are, unless `onKnown` says otherwise. */
  private async insert(
    sql: SqlSession,
    into: string,
    rows: readonly (readonly SqlValue[])[],
    onKnown = sql.dialect === 'mysql'
      ? 'ON DUPLICATE KEY UPDATE channel = channel'
      : 'ON CONFLICT DO NOTHING',
  ): Promise<void> {
    for (let i = 0; i < rows.length; i += rowsPerInsert) {
      const part = rows.slice(i, i + rowsPerInsert);
      let at = 0;
      const places = part.map((row) => `(${row.map(() => `$${++at}`).join(', ')})`).join(', ');
      await sql.query(`INSERT INTO ${into} VALUES ${places} ${onKnown}`, part.flat());
    }
  }

  private leftRow(one: Leftover): SqlValue[] {
    const { side, line, sinceDate } = one;
    return [
      this.channel,
      this.date,
      side,
      line.kind,
      line.key,
      line.ref,
      leftoverText(one),
      sinceDate,
    ];
  }

  private poolRow(one: Leftover): SqlValue[] {
    const { side, line, sinceDate } = one;
    return [this.channel, side, line.kind, line.key, line.ref, leftoverText(one), sinceDate];
  }

  private async rows(sql: SqlSession, text: string): Promise<readonly Record<string, unknown>[]> {
    return (await sql.query(text, [this.channel, this.date])).rows;
  }
}

function runText(sql: SqlSession): string {
  return `SELECT state, owner, after_kind, after_key, tally,
      lease_until_ms - ${sqlNowMs[sql.dialect]} AS left_ms
    FROM turngate_recon_run WHERE channel = $1 AND business_date = $2`;
}

function breakFrom(row: Record<string, unknown>): Break {
  const code = String(row['code']) as FindingCode;
  return {
    code,
    severity: severityOf(code),
    kind: String(row['line_kind']),
    key: String(row['line_key']),
    amountMinor: BigInt(String(row['amount_minor'])),
    currency: String(row['currency']),
    detail: String(row['detail']),
  };
}

const bigintMark = '#';

function leftoverText({ side, line, code }: Leftover): string {
  return JSON.stringify({ side, line, code }, (_, value: unknown) =>
    typeof value === 'bigint' ? bigintMark + value.toString() : value,
  );
}

function leftoverFrom(row: Record<string, unknown>): Leftover {
  const parsed = JSON.parse(String(row['line'])) as Leftover;
  const { amountMinor, quota, ...rest } = parsed.line as unknown as Record<string, string> & {
    quota?: Record<string, string>;
  };
  const big = (text: string | undefined): bigint =>
    BigInt((text as string).slice(bigintMark.length));
  const line = {
    ...rest,
    amountMinor: big(amountMinor),
    ...(quota === undefined
      ? {}
      : {
          quota: {
            spentMinor: big(quota['spentMinor']),
            capturedMinor: big(quota['capturedMinor']),
          },
        }),
  } as unknown as Line;
  return { side: parsed.side, code: parsed.code, line, sinceDate: String(row['since_date']) };
}

function tallyText(tally: Tally): string {
  return JSON.stringify(
    [...tally].map(([code, { count, sums }]) => [
      code,
      count,
      [...sums].map(([c, s]) => [c, s.toString()]),
    ]),
  );
}

function tallyFrom(text: string): Tally {
  const parsed = JSON.parse(text) as [FindingCode, number, [string, string][]][];
  return new Map(
    parsed.map(([code, count, sums]) => [
      code,
      { count, sums: new Map(sums.map(([currency, sum]) => [currency, BigInt(sum)])) },
    ]),
  );
}
