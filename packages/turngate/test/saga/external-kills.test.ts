/**
 * Participants in external mode, killed with -9 in the middle of their calls to a provider that survives
 * them: it takes a call in whole, whoever has died over it, some of them late.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BranchOp } from '../../src/saga/branch.ts';
import { pause, until } from '../support/clock.ts';
import { databasesAndLevels, type OpenDatabase } from '../support/databases.ts';
import { chanceOf, checkEnded, randomJobs, seed, settleBranches, statesOf } from './generator.ts';
import { KeyedProvider, type ProviderCall } from './keyed-provider.ts';
import { gidsOverDeaths, Places, untilNothingIsOpen } from './places.ts';

const timing = { leaseMs: 300, providerLatencyMaxMs: 1_000 };
/** One call in ten is that late, within what the barrier is told. */
const landsLateMs = 500;

describe.each(databasesAndLevels)('external participants on $name that die', (kind) => {
  describe.skipIf(kind.missing)('', () => {
    const chance = chanceOf(seed);
    const provider = new KeyedProvider();
    let cutOff = 0;
    let inside = 0;
    let server: Server;
    let opened: OpenDatabase;
    let places: Places;

    async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
      const call = JSON.parse(await text(request)) as ProviderCall;
      inside++;
      await pause(chance() < 0.1 ? chance() * landsLateMs : chance() * 30);
      provider.take(call);
      await pause(chance() * 30);
      inside--;
      if (response.destroyed) cutOff++;
      response.end();
    }

    beforeAll(async () => {
      server = createServer((request, response) => void answer(request, response));
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
      opened = await kind.open(4);
      const { dialect } = opened.database;
      const args = [dialect, opened.url, kind.isolation, url, JSON.stringify(timing)];
      places = new Places(args, chance);
      await places.start();
    });
    afterAll(async () => {
      await places?.kill();
      server?.closeAllConnections();
      server?.close();
      await opened?.close();
    });

    it(`ends every branch as its provider has it (seed ${seed})`, async () => {
      const { names, jobs } = randomJobs(gidsOverDeaths, chance);
      const lost = await places.storm(jobs, () => inside > 0);
      const ask = (gid: string, op: BranchOp) => places.ask(gid, op);
      await settleBranches(opened.database, chance, ask);
      await until('no call is at the provider', () => inside === 0);
      await untilNothingIsOpen(opened);
      const states = await statesOf(opened.database);
      // A try that never landed leaves nothing to cancel.
      const counts = checkEnded(names, states, (gid) => provider.effectsOf(gid), { CANCELLED: [] });
      const { kills } = places;
      const what = `${names.length} gids, ${jobs.length} operations, ${kills} kills, ${lost} lost`;
      const end = `${cutOff} calls outside cut off, ${JSON.stringify(counts)}`;
      process.stderr.write(`killed outside on ${kind.name}: seed ${seed}, ${what}, ${end}\n`);
      expect(Math.min(kills, cutOff)).toBeGreaterThan(0);
    });
  });
});
