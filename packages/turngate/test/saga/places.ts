/** Participants in processes of their own that are killed with -9 while they are asked. */
import type { BranchOp } from '../../src/saga/branch.ts';
import { httpParticipant } from '../../src/saga/index.ts';
import { type Child, startChild } from '../support/child.ts';
import { pause, until } from '../support/clock.ts';
import type { OpenDatabase } from '../support/databases.ts';
import { gidCount, inLanes, type Job } from './generator.ts';

const count = 3;
const deathsTogether = 4;
/** Each death costs the start of a process: few by default. */
export const gidsOverDeaths = process.env['TURNGATE_BARRIER_GIDS'] === undefined ? 40 : gidCount;

/** One that is started again whenever it has died. */
class Place {
  url: string | undefined;
  kills = 0;
  private child: Child | undefined;
  private readonly args: readonly string[];

  constructor(args: readonly string[]) {
    this.args = args;
  }

  async start(): Promise<void> {
    const child = startChild('../saga/participant-child.mjs', this.args);
    this.child = child;
    await until('the participant listens', () => child.lines.length > 0, 60_000);
    this.url = `http://127.0.0.1:${child.lines[0]?.slice('port '.length)}/`;
  }

  async kill(): Promise<void> {
    this.url = undefined;
    this.child?.process.kill('SIGKILL');
    await this.child?.ended;
    this.kills++;
  }
}

/** How a participant was heard: what it answered, or no answer came. */
export type Heard = 'done' | 'error' | 'lost';

export class Places {
  private readonly places: readonly Place[];
  private readonly chance: () => number;

  constructor(args: readonly string[], chance: () => number) {
    this.places = Array.from({ length: count }, () => new Place(args));
    this.chance = chance;
  }

  get kills(): number {
    return this.places.reduce((sum, place) => sum + place.kills, 0);
  }

  async start(): Promise<void> {
    await Promise.all(this.places.map((place) => place.start()));
  }

  async kill(): Promise<void> {
    await Promise.all(this.places.map((place) => place.kill()));
  }

  /** Asks one that is up. */
  async ask(gid: string, op: BranchOp): Promise<Heard> {
    for (;;) {
      const up = this.places.filter(({ url }) => url !== undefined);
      const place = up[Math.floor(this.chance() * up.length)];
      if (place === undefined) {
        await pause(5);
        continue;
      }
      const participant = httpParticipant({ url: place.url as string, timeoutMs: 60_000 });
      const { signal } = new AbortController();
      return await participant[op]({ units: 1 } as never, { gid, branch: 'b', signal }).then(
        () => 'done',
        (error: Error) => (error instanceof TypeError ? 'lost' : 'error'),
      );
    }
  }

  /**
   * Half of the lost ones are asked for again: perhaps it was done, perhaps not. Returns how many were lost.
   *
   * @param ripe when given, all die together, a few times, each time at a moment when it holds
   */
  async storm(jobs: readonly Job[], ripe?: () => boolean): Promise<number> {
    let done = 0;
    let lost = 0;
    const asked = inLanes(jobs, 12, async ({ gid, op }) => {
      while ((await this.ask(gid, op)) === 'lost') {
        lost++;
        if (this.chance() < 0.5) break;
      }
      done++;
    });
    const isOver = (): boolean => done >= jobs.length;
    const oneByOne = async (): Promise<void> => {
      while (!isOver()) {
        const place = this.places[Math.floor(this.chance() * count)] as Place;
        await pause(20 + this.chance() * 100);
        await place.kill();
        await place.start();
      }
    };
    const together = async (isRipe: () => boolean): Promise<void> => {
      for (let deaths = 0; deaths < deathsTogether && !isOver(); deaths++) {
        await pause(20 + this.chance() * 100);
        await until('it is time to die', () => isRipe() || isOver(), 60_000);
        await this.kill();
        await this.start();
      }
    };
    await Promise.all([asked, ripe === undefined ? oneByOne() : together(ripe)]);
    return lost;
  }
}

/** Sessions of the participants that hold a transaction open; the living have finished theirs. */
async function openTransactions({ database }: OpenDatabase): Promise<number> {
  const text =
    database.dialect === 'postgres'
      ? `SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database()
         AND state <> 'idle' AND pid <> pg_backend_pid() AND backend_type = 'client backend'`
      : `SELECT count(*) AS n FROM information_schema.INNODB_TRX t
         JOIN information_schema.PROCESSLIST p ON p.ID = t.trx_mysql_thread_id
         WHERE p.DB = DATABASE() AND p.ID <> CONNECTION_ID()`;
  return Number((await database.query(text, [])).rows[0]?.['n']);
}

/** Nothing is in the middle any more: what a dead one had open has been rolled back. */
export async function untilNothingIsOpen(opened: OpenDatabase): Promise<void> {
  await until('nothing is open', async () => (await openTransactions(opened)) === 0, 60_000);
}
