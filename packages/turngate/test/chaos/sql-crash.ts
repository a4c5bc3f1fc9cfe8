/** A database server crashes while a turn is held. */
import { expect } from 'vitest';
import { until } from '../support/clock.ts';
import { startChaos } from './conductor.ts';
import { expectRefused } from './expectations.ts';
import { figure } from './figures.ts';

/** Table mode: polling waiters ask at most 250 ms late; the rest is for a busy machine. */
export const pollBoundMs = 800;
/** Session mode: the server sees the end of a connection at once. */
export const atOnceMs = 900;

/** A database that can be crashed. */
export interface Database {
  readonly url: string;
  /** SIGKILL, and the same data again. */
  crash(): Promise<void>;
}

/** A turn is held while the server crashes; in session mode that is the end of the lock. */
export async function crashLaw(name: string, database: Database, store: object, keeps: boolean) {
  await using chaos = await startChaos({ store, tasks: 1, leaseMs: 4_000, waitMs: 6_000 });
  const holder = chaos.chance.pick(chaos.workers);
  const { id } = await holder.holdNext();
  const at = chaos.now();
  if (keeps) await database.crash();
  else await chaos.storeLoses(() => database.crash());
  if (keeps) {
    holder.goOn();
  } else {
    figure(
      `${name}, server crashed, until the next grant`,
      await chaos.takenOver(at, { but: holder }),
    );
    await until('the holder is told', () => chaos.turn(id).some(({ verb }) => verb === 'lost'));
    holder.goOn();
  }
  await until('its turn ends', () => chaos.turn(id).some(({ verb }) => verb === 'release'));
  await chaos.works(20);
  if (!keeps) expectRefused(chaos.turn(id));
  expect(await chaos.finish({ fences: true, exclusion: true })).toEqual([]);
}
