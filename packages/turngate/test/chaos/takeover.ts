/** The three ways to lose a holder, alike for every store, with the time until the next one. */
import { type FaultProxy, startProxy } from '@turngate/test-servers';
import { expect } from 'vitest';
import { until } from '../support/clock.ts';
import { type Chaos, startChaos, type Worker } from './conductor.ts';
import { expectRefused } from './expectations.ts';
import { figure } from './figures.ts';

/** A store, and what it promises. */
export interface Takeover {
  readonly name: string;
  /** The server, as a URL with a port, for the proxy of one worker. */
  readonly serverUrl: string;
  /** The worker's `store`, for a server at this URL. */
  store(url: string): object;
  readonly leaseMs: number;
  /** The next grant comes no later than this after the fault. */
  readonly killed: number;
  /** Absent where the server cannot see it: the lock then stays until the process goes on. */
  readonly frozen?: number;
  readonly partitioned?: number;
  /** The server sees the end of the process. @default false */
  readonly endsWithProcess?: boolean;
  /** @default true */
  readonly fences?: boolean;
}

/** Kills a holder, freezes one, cuts one off; asks all laws at the end. */
export async function takeovers(target: Takeover): Promise<void> {
  const { leaseMs, fences = true } = target;
  // One task for each process: a dead process then leaves a hold, and no place in the queue with it.
  await using proxy = await startProxy(target.serverUrl);
  const store = (worker: number) => target.store(worker === 0 ? proxy.url : target.serverUrl);
  await using chaos = await startChaos({ store, tasks: 1, leaseMs, waitMs: leaseMs + 3_000 });
  const [first, second, third] = chaos.workers as [Worker, Worker, Worker];
  await killed(chaos, third, target);
  await frozen(chaos, second, target);
  await cutOff(chaos, first, { proxy, target });
  const { endsWithProcess = false } = target;
  expect(await chaos.finish({ fences, exclusion: true, endsWithProcess })).toEqual([]);
}

async function killed(chaos: Chaos, victim: Worker, target: Takeover): Promise<void> {
  await victim.holdNext();
  const at = await victim.kill();
  const ms = await chaos.takenOver(at, { but: victim });
  figure(`${target.name} (lease ${target.leaseMs} ms), holder killed`, ms);
  expect(ms, 'killed').toBeLessThan(target.killed);
}

async function frozen(chaos: Chaos, victim: Worker, target: Takeover): Promise<void> {
  const { id } = await victim.holdNext();
  const at = await victim.freeze();
  if (target.frozen === undefined) {
    await pastTheLease(chaos, at, victim, target);
  } else {
    const ms = await chaos.takenOver(at, { but: victim, grants: 3 });
    figure(`${target.name} (lease ${target.leaseMs} ms), holder frozen`, ms);
    expect(ms, 'frozen').toBeLessThan(target.frozen);
  }
  victim.goOn();
  victim.thaw();
  await until('its turn ends', () => ended(chaos, id));
  expectRefused(chaos.turn(id), {
    fences: target.fences !== false && target.frozen !== undefined,
  });
  await chaos.works(10);
}

async function cutOff(
  chaos: Chaos,
  victim: Worker,
  { proxy, target }: { proxy: FaultProxy; target: Takeover },
): Promise<void> {
  const { id } = await victim.holdNext();
  const at = chaos.now();
  proxy.blackhole();
  if (target.partitioned === undefined) {
    await pastTheLease(chaos, at, victim, target);
  } else {
    const ms = await chaos.takenOver(at, { but: victim, grants: 3 });
    figure(`${target.name} (lease ${target.leaseMs} ms), holder cut off`, ms);
    expect(ms, 'cut off').toBeLessThan(target.partitioned);
  }
  victim.goOn();
  await until('its turn ends', () => ended(chaos, id), 20_000);
  expectRefused(chaos.turn(id), {
    fences: target.fences !== false && target.partitioned !== undefined,
  });
  proxy.heal();
  const healed = chaos.now();
  const own = (): boolean => chaos.grantsAfter(healed).some(({ node }) => node === victim.node);
  await until('the one that was cut off works again', own, 20_000);
}

function ended(chaos: Chaos, id: string): boolean {
  return chaos.turn(id).some(({ verb, phase }) => verb === 'effect' && phase === 'fail');
}

/** The server keeps the lock: half a lease later still nobody else has got it. */
async function pastTheLease(
  chaos: Chaos,
  at: number,
  victim: Worker,
  { leaseMs, name }: Takeover,
): Promise<void> {
  await until('the lease is over', () => chaos.now() > at + leaseMs * 1.5);
  expect(chaos.grantsAfter(at, victim), `${name} keeps its lock`).toEqual([]);
}
