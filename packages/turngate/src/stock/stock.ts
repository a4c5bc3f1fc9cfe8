/**
 * Hot stock: one item in many segments, so that buyers do not queue for one row. At every commit
 * left + held + settled = total.
 */
import { ClaimTable } from '../claim/claim-table.ts';
import type { SqlAnswer, SqlDatabase, SqlSession, SqlStep } from '../contract/sql-session.ts';
import { together } from '../contract/sql-together.ts';
import { TurngateError } from '../core/errors.ts';
import { hash64 } from '../core/hash64.ts';
import { integerOption, knownOptions, optionError } from '../core/option.ts';
import { sqlNowMs } from '../core/sql-text.ts';
import { attemptIds, type Runtime, systemRuntime } from '../runtime/runtime.ts';
import { countStep, overQuota } from './quota.ts';
import {
  awaitSegment,
  gather,
  moveUnits,
  type Part,
  pickMark,
  pickSegment,
  takenPart,
  takeStep,
} from './segments.ts';

/** A new item. */
export interface StockItem {
  readonly item: string;
  /** @unit units, integer, 0 to 1_000_000_000 */
  readonly units: number;
  /**
   * How many rows the units are spread over. More rows let more buyers through at once and leave
   * smaller fragments to gather at the end.
   *
   * @unit segments, integer, 1 to 256
   * @default 16
   */
  readonly segments?: number;
}

/** A wish to hold units. */
export interface Reserve {
  /** Names the reservation for ever: asking again with it changes nothing more. */
  readonly reservationId: string;
  readonly item: string;
  readonly units: number;
  /** Who holds them; decides the segment that is tried first, and whose quota counts. */
  readonly holder: string;
  /** At most so many units of the item for one holder, over all reservations that are not given back. */
  readonly quota?: number;
  /**
   * The hold ends by itself after this; the sweeper gives the units back.
   *
   * @unit milliseconds, integer, 1_000 to 31 days
   * @default 1_800_000
   */
  readonly holdMs?: number;
}

/** How a reservation stands. */
export type ReservationState = 'HELD' | 'SETTLED' | 'RELEASED' | 'EXPIRED';

/** How a wish ended. */
export type ReserveResult =
  | { readonly kind: 'held'; readonly parts: readonly Part[] }
  /** The reservation exists: this is how it stands. */
  | { readonly kind: 'already'; readonly state: ReservationState }
  /** `left` is what all segments together held; hand the result to `noteSoldOut` after your rollback. */
  | {
      readonly kind: 'sold-out';
      readonly item: string;
      readonly left: number;
      readonly generation: number | undefined;
    }
  | { readonly kind: 'over-quota'; readonly usedUnits: number };

/** How giving a reservation up or making it final ended. */
export type SettleResult = 'applied' | 'already' | 'refused' | 'missing';

/** Stock in segments. Everything that takes a session runs in the caller's transaction. */
export interface Stock {
  /** Creates an item. @throws OPTION_INVALID */
  create(sql: SqlSession, item: StockItem): Promise<void>;
  /**
   * Holds units. Make it one of the last statements of your transaction: the segment's row stays
   * locked until the end. READ COMMITTED, please: at REPEATABLE READ InnoDB also locks what it only
   * looked at.
   */
  reserve(sql: SqlSession, wish: Reserve): Promise<ReserveResult>;
  /** Makes a hold final. */
  settle(sql: SqlSession, reservationId: string): Promise<SettleResult>;
  /** Gives a hold back, to the very segments it came from, once. */
  release(sql: SqlSession, reservationId: string): Promise<SettleResult>;
  /** Adds units to an item. The caller guards it against repeats. */
  add(sql: SqlSession, item: string, units: number): Promise<void>;
  /**
   * Remembers what a `sold-out` found, so that later wishes are refused without a lock. Call it after
   * your transaction has ended; without it everything is right but slower.
   */
  noteSoldOut(database: SqlDatabase, result: ReserveResult): Promise<void>;
  /** Gives back holds whose time is over; returns how many. Any number of nodes may call it. */
  expireDue(database: SqlDatabase, limit?: number): Promise<number>;
  /** What is left, held and settled of an item; undefined when there is no such item. */
  read(sql: Pick<SqlSession, 'query'>, item: string): Promise<StockState | undefined>;
}

/** An item's units. */
export interface StockState {
  readonly total: number;
  readonly left: number;
  readonly held: number;
  readonly settled: number;
}

const unitsMax = 1_000_000_000;
const savepoint = 'turngate_stock';

/** Creates the stock functions; all state is in the database. */
export function createStock(options: { readonly runtime?: Runtime } = {}): Stock {
  const nextToken = attemptIds(options.runtime ?? systemRuntime);
  return {
    create: createItem,
    reserve: (sql, wish) => reserve(sql, wish, nextToken()),
    settle: async (sql, id) => (await end(sql, id, 'SETTLED')).result,
    release: (sql, id) => giveBack(sql, id, 'RELEASED'),
    add: addUnits,
    noteSoldOut,
    expireDue,
    read,
  };
}

async function createItem(sql: SqlSession, given: StockItem): Promise<void> {
  knownOptions('stock item', given, ['item', 'units', 'segments']);
  const item = checkName('item', given.item);
  const units = integerOption('units', given.units, { min: 0, max: unitsMax, fallback: 0 });
  const segments = integerOption('segments', given.segments, { min: 1, max: 256, fallback: 16 });
  await sql.query(
    'INSERT INTO turngate_stock (item, total, segments, generation, known_left) VALUES ($1, $2, $3, 0, NULL)',
    [item, units, segments],
  );
  const share = Math.floor(units / segments);
  const places = Array.from({ length: segments }, (_, i) => `($1, ${i}, $${i + 2})`).join(', ');
  await sql.query(
    `INSERT INTO turngate_stock_segment (item, segment, units_left) VALUES ${places}`,
    [item, ...Array.from({ length: segments }, (_, i) => share + (i < units % segments ? 1 : 0))],
  );
}

async function reserve(sql: SqlSession, wish: Reserve, token: string): Promise<ReserveResult> {
  const { item, units, holder, reservationId } = checkWish(wish);
  const head = await sql.query('SELECT segments, known_left FROM turngate_stock WHERE item = $1', [
    item,
  ]);
  const [row] = head.rows;
  if (row === undefined)
    throw new TurngateError('STOCK_ITEM_UNKNOWN', `there is no item "${item}"`);
  const known = row['known_left'];
  if (known != null && units > Number(known)) {
    const state = await stateOf(sql, reservationId);
    if (state !== undefined) return { kind: 'already', state };
    return { kind: 'sold-out', item, left: Number(known), generation: undefined };
  }
  const own = Number(hash64(holder) & 0xffffn) % Number(row['segments']);
  const undo = (): Promise<unknown> => sql.query(`ROLLBACK TO SAVEPOINT ${savepoint}`, []);
  const count = sql.dialect === 'postgres' ? countStep(wish) : undefined;
  const atOnce =
    count === undefined
      ? []
      : [count, pickMark, takeStep({ reservationId, token }, { item, own, units })];
  const {
    state,
    answers: [counted, , taken],
  } = await insertReservation(sql, wish, token, atOnce);
  if (state !== undefined) {
    await undo();
    return { kind: 'already', state };
  }
  const usedUnits = await overQuota(sql, wish, counted);
  if (usedUnits !== undefined) {
    await undo();
    return { kind: 'over-quota', usedUnits };
  }
  const part = takenPart(taken, units);
  if (part !== undefined) return { kind: 'held', parts: [part] };
  const free = taken === undefined ? await pickSegment(sql, item, own, units) : undefined;
  const one = free ?? (await awaitSegment(sql, item, own, units));
  if (one !== undefined) return await take(sql, wish, [one]);
  const { left, generation, parts } = await gather(sql, item, units);
  if (parts !== undefined) return await take(sql, wish, parts);
  await undo();
  return { kind: 'sold-out', item, left, generation };
}

const reservations = new ClaimTable({
  table: 'turngate_reservation',
  key: ['reservation_id'],
  fresh: { item: '{}', holder: '{}', units: '{}', state: "'HELD'", due_ms: '{now} + {}' },
  read: { state: 'state' },
});

/**
 * The state that it has if it was there before; undefined when the row is ours. Behind a savepoint, and
 * with further steps in the same trip.
 */
async function insertReservation(
  sql: SqlSession,
  { reservationId, item, holder, units, holdMs }: Reserve,
  token: string,
  further: readonly SqlStep[],
): Promise<{ state: ReservationState | undefined; answers: readonly SqlAnswer[] }> {
  const range = { min: 1_000, max: 31 * 86_400_000, fallback: 1_800_000 };
  const lifeMs = integerOption('holdMs', holdMs, range);
  const claim = { key: [reservationId], values: [item, holder, units, lifeMs], token };
  const mark = { text: `SAVEPOINT ${savepoint}`, values: [] };
  const lead = [mark, ...reservations.steps(sql, claim)];
  const answers = await together(sql, [...lead, ...further]);
  const { ours, row } = await reservations.claimed(sql, claim, answers.slice(0, lead.length));
  const state = ours ? undefined : (row['state'] as ReservationState);
  return { state, answers: answers.slice(lead.length) };
}

/** The hot rows come last, so that they are held shortest. */
async function take(
  sql: SqlSession,
  { reservationId, item }: Reserve,
  parts: readonly Part[],
): Promise<ReserveResult> {
  const places = parts.map((_, i) => `($1, $${2 * i + 2}, $${2 * i + 3})`).join(', ');
  await sql.query(
    `INSERT INTO turngate_reservation_part (reservation_id, segment, units) VALUES ${places}`,
    [reservationId, ...parts.flatMap(({ segment, units }) => [segment, units])],
  );
  await moveUnits(sql, item, parts, 1);
  return { kind: 'held', parts };
}

interface Ended {
  readonly result: SettleResult;
  readonly item: string;
  readonly holder: string;
  readonly units: number;
}

/** Moves HELD to its end, once. */
async function end(
  sql: SqlSession,
  reservationId: string,
  to: Exclude<ReservationState, 'HELD'>,
): Promise<Ended> {
  const { affectedRows } = await sql.query(
    `UPDATE turngate_reservation SET state = $2 WHERE reservation_id = $1 AND state = 'HELD'`,
    [reservationId, to],
  );
  const { rows } = await sql.query(
    'SELECT state, item, holder, units FROM turngate_reservation WHERE reservation_id = $1',
    [reservationId],
  );
  const [row] = rows;
  const facts = {
    item: String(row?.['item']),
    holder: String(row?.['holder']),
    units: Number(row?.['units']),
  };
  if (row === undefined) return { result: 'missing', ...facts };
  if (affectedRows > 0) return { result: 'applied', ...facts };
  return { result: isSame(row['state'], to) ? 'already' : 'refused', ...facts };
}

/** Released and expired are the same to whoever wants the units back. */
function isSame(state: unknown, to: ReservationState): boolean {
  const given = ['RELEASED', 'EXPIRED'];
  return state === to || (given.includes(state as string) && given.includes(to));
}

async function giveBack(
  sql: SqlSession,
  reservationId: string,
  to: 'RELEASED' | 'EXPIRED',
): Promise<SettleResult> {
  const { result, item, holder, units } = await end(sql, reservationId, to);
  if (result !== 'applied') return result;
  await sql.query(
    'UPDATE turngate_stock_quota SET units_used = units_used - $3 WHERE item = $1 AND holder = $2',
    [item, holder, units],
  );
  const { rows } = await sql.query(
    'SELECT segment, units FROM turngate_reservation_part WHERE reservation_id = $1',
    [reservationId],
  );
  await unitsCameBack(sql, item);
  const parts = rows.map((row) => ({
    segment: Number(row['segment']),
    units: Number(row['units']),
  }));
  await moveUnits(sql, item, parts, -1);
  return 'applied';
}

/** The item's row first, as gathering does; every remembered "sold out" is over. */
async function unitsCameBack(sql: SqlSession, item: string): Promise<void> {
  await sql.query(
    'UPDATE turngate_stock SET known_left = NULL, generation = generation + 1 WHERE item = $1',
    [item],
  );
}

async function addUnits(sql: SqlSession, item: string, units: number): Promise<void> {
  integerOption('units', units, { min: 1, max: unitsMax, fallback: 1 });
  const { affectedRows } = await sql.query(
    'UPDATE turngate_stock SET total = total + $2, known_left = NULL, generation = generation + 1 WHERE item = $1',
    [item, units],
  );
  if (affectedRows === 0)
    throw new TurngateError('STOCK_ITEM_UNKNOWN', `there is no item "${item}"`);
  const { rows } = await sql.query('SELECT segments FROM turngate_stock WHERE item = $1', [item]);
  const segments = Number(rows[0]?.['segments']);
  const share = Math.floor(units / segments);
  const parts = Array.from({ length: segments }, (_, segment) => ({
    segment,
    units: share + (segment < units % segments ? 1 : 0),
  })).filter((part) => part.units > 0);
  await moveUnits(sql, item, parts, -1);
}

async function noteSoldOut(database: SqlDatabase, result: ReserveResult): Promise<void> {
  if (result.kind !== 'sold-out' || result.generation === undefined) return;
  await database.query(
    'UPDATE turngate_stock SET known_left = $2 WHERE item = $1 AND generation = $3',
    [result.item, result.left, result.generation],
  );
}

async function expireDue(database: SqlDatabase, limit = 100): Promise<number> {
  const { rows } = await database.query(
    `SELECT reservation_id FROM turngate_reservation
     WHERE state = 'HELD' AND due_ms <= ${sqlNowMs[database.dialect]}
     ORDER BY due_ms LIMIT ${integerOption('limit', limit, { min: 1, max: 10_000, fallback: 100 })}`,
    [],
  );
  let expired = 0;
  for (const { reservation_id: id } of rows) {
    // One transaction each: a hold that is settled meanwhile is simply refused.
    const result = await database.transaction((sql) => giveBack(sql, String(id), 'EXPIRED'));
    if (result === 'applied') expired++;
  }
  return expired;
}

async function read(sql: Pick<SqlSession, 'query'>, item: string): Promise<StockState | undefined> {
  const { rows } = await sql.query(
    `SELECT t.total AS total,
       (SELECT sum(units_left) FROM turngate_stock_segment s WHERE s.item = t.item) AS units_left,
       (SELECT sum(units) FROM turngate_reservation r WHERE r.item = t.item AND r.state = 'HELD') AS held,
       (SELECT sum(units) FROM turngate_reservation r WHERE r.item = t.item AND r.state = 'SETTLED') AS settled
     FROM turngate_stock t WHERE t.item = $1`,
    [item],
  );
  const [row] = rows;
  if (row === undefined) return undefined;
  return {
    total: Number(row['total']),
    left: Number(row['units_left'] ?? 0),
    held: Number(row['held'] ?? 0),
    settled: Number(row['settled'] ?? 0),
  };
}

async function stateOf(sql: SqlSession, id: string): Promise<ReservationState | undefined> {
  const text = 'SELECT state FROM turngate_reservation WHERE reservation_id = $1';
  return (await sql.query(text, [id])).rows[0]?.['state'] as ReservationState | undefined;
}

function checkWish(wish: Reserve): Reserve {
  knownOptions('reservation', wish, [
    'reservationId',
    'item',
    'units',
    'holder',
    'quota',
    'holdMs',
  ]);
  checkName('reservationId', wish.reservationId);
  checkName('item', wish.item);
  checkName('holder', wish.holder);
  integerOption('units', wish.units, { min: 1, max: unitsMax, fallback: 1 });
  integerOption('quota', wish.quota, { min: 1, max: unitsMax, fallback: unitsMax });
  return wish;
}

function checkName(option: string, name: unknown): string {
  if (typeof name !== 'string' || !/^[\x21-\x7e]{1,200}$/.test(name)) {
    throw optionError(option, '1 to 200 visible ASCII characters', name);
  }
  return name;
}
