/**
 * The random orders of the generator through participants in processes of their own that are killed
 * with -9 all the time: an answer that never came is asked for again, by chance or not at all.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { databasesAndLevels, type OpenDatabase } from '../support/databases.ts';
import { chanceOf, checkBranches, randomJobs, seed } from './generator.ts';
import { gidsOverDeaths, Places, untilNothingIsOpen } from './places.ts';

describe.each(databasesAndLevels)('participants on $name that die', (kind) => {
  describe.skipIf(kind.missing)('', () => {
    const chance = chanceOf(seed);
    let opened: OpenDatabase;
    let places: Places;

    beforeAll(async () => {
      opened = await kind.open(4);
      places = new Places([opened.database.dialect, opened.url, kind.isolation], chance);
      await places.start();
    });
    afterAll(async () => {
      await places?.kill();
      await opened?.close();
    });

    it(`keeps every law of the barrier (seed ${seed})`, async () => {
      const { names, jobs } = randomJobs(gidsOverDeaths, chance);
      const lost = await places.storm(jobs);
      await untilNothingIsOpen(opened);
      const counts = JSON.stringify(await checkBranches(opened.database, names));
      const what = `${names.length} gids, ${jobs.length} operations, ${places.kills} kills, ${lost} lost`;
      process.stderr.write(`killed on ${kind.name}: seed ${seed}, ${what}, ${counts}\n`);
      expect(places.kills).toBeGreaterThan(0);
    });
  });
});
