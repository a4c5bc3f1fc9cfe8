/** A participant hears its words again, late, and in any order, and dies over some of them. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { SqlSession } from 'turngate/contract';
import { gidAt } from 'turngate/saga';
import { dieOver } from '../../die-over.ts';
import { defineScenario, type ScenarioStage } from '../../scenario.ts';
import { DepotFloor } from '../depot-floor.ts';
import { depotWalls } from '../walls.ts';
import { guardedHolds } from './guarded-holds.ts';
import { noBarrier } from './no-barrier.ts';
import { right } from './right.ts';
import { type Word, type WordVerbs, wordLaws } from './terms.ts';

const supplied = 10;
const tries = 4;
const ends = 3;
const delayMsMax = 40;

type Course = 'confirmed' | 'confirmed-over-deaths' | 'overtaken' | 'crossed';
const courses: readonly Course[] = ['confirmed', 'overtaken', 'crossed', 'confirmed-over-deaths'];

/** What became of one transaction; its article is its own. */
interface Told {
  readonly skuId: string;
  readonly end: 'confirm' | 'cancel';
}

type Stage = ScenarioStage<WordVerbs>;

export const wordStorm = defineScenario({
  title: 'words in any order',
  story:
    'A participant hears try, confirm and cancel several times, at once, late and in any order, ' +
    'on three nodes; some die before they have committed or answered.',
  laws: wordLaws,
  tables: depotWalls,
  contenders: { turngate: right, 'no-barrier': noBarrier, 'guarded-holds': guardedHolds },
  async storm(stage: Stage): Promise<readonly Told[]> {
    const floor = new DepotFloor(stage.store);
    const count = stage.quick ? 8 : 16;
    const numbers = Array.from({ length: count }, (_, i) => i);
    for (const i of numbers) await floor.openSku(`sku-${i}`, supplied);
    const delays = numbers.map(() =>
      Array.from({ length: tries + ends }, () => stage.chance.between(0, delayMsMax)),
    );
    return await Promise.all(
      numbers.map(async (i) => {
        const skuId = `sku-${i}`;
        const gid = gidAt(Date.now(), `words-${i}`);
        const course = courses[i % courses.length] as Course;
        const hold = { gid, skuId, checkoutNo: `words-${i}`, units: 1 };
        await play(stage, { course, hold, first: i, delays: delays[i] as number[] });
        return { skuId, end: course.startsWith('confirmed') ? 'confirm' : 'cancel' };
      }),
    );
  },
  async audit(sql: SqlSession, told: readonly Told[]) {
    const { rows } = await sql.query(
      'SELECT sku_id, units_left, units_held, units_sold FROM shop_depot',
      [],
    );
    const found = new Map(rows.map((row) => [String(row['sku_id']), row]));
    let [twice, hanging] = [0, 0];
    for (const { skuId, end } of told) {
      const row = found.get(skuId) ?? {};
      const [left, held, sold] = ['units_left', 'units_held', 'units_sold'].map((name) =>
        Number(row[name]),
      ) as [number, number, number];
      const gone = end === 'confirm' ? 1 : 0;
      if (left === supplied - gone && held === 0 && sold === gone) continue;
      if (end === 'cancel' && held === 1 && left === supplied - 1 && sold === 0) hanging++;
      else twice++;
    }
    return { twice, hanging };
  },
});

interface Play {
  readonly course: Course;
  readonly hold: Omit<Word, 'op'>;
  /** The node of its first word. */
  readonly first: number;
  readonly delays: readonly number[];
}

async function play(stage: Stage, { course, hold, first, delays }: Play): Promise<void> {
  const say = (op: Word['op'], node: number): Promise<unknown> =>
    stage.askUntilSettled({ node: first + node, verb: 'word', input: { ...hold, op } });
  const sayLate = async (op: Word['op'], node: number): Promise<void> => {
    await sleep(delays[node]);
    await say(op, node);
  };
  const die = (node: number, op: Word['op']) =>
    ({ node, verb: 'word', input: { ...hold, op } }) as const;
  const times = (count: number, run: (i: number) => Promise<unknown>): Promise<unknown> =>
    Promise.all(Array.from({ length: count }, (_, i) => run(i)));
  switch (course) {
    case 'confirmed':
      await times(tries, (i) => say('try', i));
      await times(ends, (i) => say('confirm', i));
      await say('try', 1); // A repeat that was long on its way.
      return;
    case 'confirmed-over-deaths':
      await dieOver(stage, { ...die(first, 'try'), hangAt: 'written' });
      await say('try', 1);
      await dieOver(stage, { ...die(first + 1, 'confirm'), hangAt: 'answered' });
      await say('confirm', 2);
      return;
    case 'overtaken':
      await times(2, (i) => say('cancel', i));
      await say('try', 2);
      return;
    case 'crossed':
      // Whoever is first: the cancel is said, so nothing may be left of it.
      await Promise.all([
        ...[0, 1].map((i) => sayLate('try', i)),
        ...[2, 3, 4].map((i) => sayLate('cancel', i)),
      ]);
      return;
  }
}
