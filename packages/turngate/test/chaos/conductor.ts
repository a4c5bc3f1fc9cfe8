/** Starts the processes of a chaos run, does them harm, ends them, and asks the laws. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  startRedis,
  type TemporaryDir,
  type TestServer,
  temporaryDir,
} from '@turngate/test-servers';
import { Redis } from 'ioredis';
import { until } from '../support/clock.ts';
import { type Effect, type History, type Line, monoMs, readLines } from './history.ts';
import { broken, type Promises } from './laws.ts';
import { type Chance, chance, chaosSeed } from './schedule.ts';

/** How a run is set up. */
export interface ChaosOptions {
  /** For `openStore` of the workers; a function gives each worker its own (a proxy, say). */
  readonly store: object | ((worker: number) => object);
  /** @default 3 */
  readonly workers?: number;
  /** Tasks of one worker that want the lock. @default 2 */
  readonly tasks?: number;
  /** @default ['hot'] */
  readonly names?: readonly string[];
  /** @default 1_000 */
  readonly leaseMs?: number;
  /** @default 3_000 */
  readonly waitMs?: number;
  readonly mutant?: string;
  /** Do the tasks of a worker ask in one tick? @default false */
  readonly inStep?: boolean;
}

/** A turn that stands between its read and its write. */
export interface Holding {
  readonly name: string;
  readonly id: string;
}

interface Message {
  readonly said: 'ready' | 'holding';
  readonly name: string;
  readonly id: string;
}

/** Ending takes this long at most, from the last answer of its store on. */
const endLimitMs = 10_000;
/** A busy machine takes seconds to start a process. */
const workerLimitMs = 60_000;

/** One process of a run. */
export class Worker {
  readonly node: string;
  private readonly child: ChildProcess;
  private readonly messages: Message[] = [];
  private readonly frozen: { node: string; from: number; to: number }[];
  private readonly killed: Map<string, number>;

  constructor(
    config: { readonly node: string } & object,
    frozen: { node: string; from: number; to: number }[],
    killed: Map<string, number>,
  ) {
    this.node = config.node;
    this.frozen = frozen;
    this.killed = killed;
    const script = fileURLToPath(new URL('worker.mjs', import.meta.url));
    this.child = fork(script, [JSON.stringify(config)]);
    this.child.on('message', (message) => this.messages.push(message as Message));
  }

  private get gone(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  private async heard(said: Message['said']): Promise<Message> {
    const find = (): number => this.messages.findIndex((message) => message.said === said);
    await until(`${this.node} says ${said}`, () => find() >= 0 || this.gone, workerLimitMs);
    const at = find();
    if (at < 0) throw new Error(`${this.node} ended (${this.child.exitCode}) before "${said}"`);
    return this.messages.splice(at, 1)[0] as Message;
  }

  async ready(): Promise<void> {
    await this.heard('ready');
  }

  /** Stops the next turn of this process between its read and its write, holding the lock. */
  async holdNext(): Promise<Holding> {
    this.child.send({ verb: 'hold' });
    return await this.heard('holding');
  }

  /** Lets the held turn go on. */
  goOn(): void {
    this.child.send({ verb: 'go' });
  }

  /** SIGKILL; gives the time. */
  async kill(): Promise<number> {
    const at = monoMs();
    this.killed.set(this.node, at);
    const ended = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await ended;
    return at;
  }

  /** SIGSTOP, until the kernel says that it stands. */
  async freeze(): Promise<number> {
    const from = monoMs();
    this.frozen.push({ node: this.node, from, to: Number.POSITIVE_INFINITY });
    this.child.kill('SIGSTOP');
    const state = (): string | undefined =>
      readFileSync(`/proc/${this.child.pid}/stat`, 'utf8').split(') ')[1]?.[0];
    await until('the worker stands still', () => state() === 'T');
    return from;
  }

  /** SIGCONT. */
  thaw(): void {
    const span = this.frozen.findLast(({ node }) => node === this.node);
    if (span !== undefined) span.to = monoMs();
    this.child.kill('SIGCONT');
  }

  /** Asks it to finish. It must end by itself, in order. */
  async finish(): Promise<string[]> {
    if (this.killed.has(this.node)) return [];
    if (!this.gone && this.child.connected) this.child.send({ verb: 'finish' });
    try {
      await until(`${this.node} has ended by itself`, () => this.gone, endLimitMs);
    } catch (error) {
      return [(error as Error).message];
    }
    const how = this.child.exitCode ?? this.child.signalCode;
    return how === 0 ? [] : [`${this.node} ended with ${how}`];
  }

  /** For the end of a test, however it went. */
  async destroy(): Promise<void> {
    if (this.gone) return;
    this.child.kill('SIGKILL');
    await once(this.child, 'exit');
  }
}

/** A run. */
export class Chaos implements AsyncDisposable {
  readonly workers: Worker[] = [];
  readonly chance: Chance;
  private readonly options: ChaosOptions;
  private readonly dir: TemporaryDir;
  private readonly resourceServer: TestServer;
  private readonly frozen: { node: string; from: number; to: number }[] = [];
  private readonly killed = new Map<string, number>();
  private readonly storeLost: { from: number; to: number }[] = [];
  private started = 0;

  constructor(options: ChaosOptions, dir: TemporaryDir, resourceServer: TestServer) {
    this.options = options;
    this.dir = dir;
    this.resourceServer = resourceServer;
    this.chance = chance(chaosSeed);
    mkdirSync(this.historyDir);
  }

  /** Those that were not killed. */
  get alive(): readonly Worker[] {
    return this.workers.filter(({ node }) => !this.killed.has(node));
  }

  private get historyDir(): string {
    return join(this.dir.path, 'history');
  }

  private get names(): readonly string[] {
    return this.options.names ?? ['hot'];
  }

  /** One more process. */
  async addWorker(): Promise<Worker> {
    const { store, tasks = 2, leaseMs = 1_000, waitMs = 3_000, mutant, inStep } = this.options;
    const number = this.started++;
    const node = `w${number}`;
    const config = {
      node,
      store: typeof store === 'function' ? store(number) : store,
      resourceUrl: this.resourceServer.url,
      historyFile: join(this.historyDir, `${node}.jsonl`),
      names: this.names,
      tasks,
      leaseMs,
      waitMs,
      seed: chaosSeed + number,
      ...(mutant === undefined ? {} : { mutant }),
      inStep: inStep === true,
    };
    const worker = new Worker(config, this.frozen, this.killed);
    this.workers.push(worker);
    await worker.ready();
    return worker;
  }

  /** Kills one and starts another in its place; gives the time of the kill. */
  async replace(worker: Worker): Promise<number> {
    const at = await worker.kill();
    await this.addWorker();
    return at;
  }

  /** What a turn did, as its process wrote it down. */
  turn(id: string): Line[] {
    return this.lines().filter((line) => line.id === id);
  }

  /** A fault that makes the store forget grants; gives the time when it began. */
  async storeLoses(fault: () => Promise<unknown>): Promise<number> {
    const from = monoMs();
    await fault();
    this.storeLost.push({ from, to: monoMs() });
    return from;
  }

  /** The clock of the history. */
  now(): number {
    return monoMs();
  }

  lines(): Line[] {
    return readLines(this.historyDir);
  }

  /** Grants that callers got after a moment. */
  grantsAfter(at: number, but?: Worker): Line[] {
    return this.lines().filter(
      ({ t, side, verb, phase, node }) =>
        t > at && side === 'client' && verb === 'acquire' && phase === 'ok' && node !== but?.node,
    );
  }

  /** Waits for so many grants after a moment; gives the time until the first, in milliseconds. */
  async takenOver(at: number, options: { but?: Worker; grants?: number } = {}): Promise<number> {
    const { but, grants = 1 } = options;
    const seen = (): Line[] => this.grantsAfter(at, but);
    await until('the lock is granted again', () => seen().length >= grants, workerLimitMs);
    return (seen()[0]?.t ?? Number.NaN) - at;
  }

  /** Work without harm: until so many more grants were given to callers. */
  async works(grants = 20): Promise<void> {
    await this.takenOver(monoMs(), { grants });
  }

  /** Ends all processes and gives what broke. */
  async finish(promises: Promises): Promise<string[]> {
    const ends = await Promise.all(this.workers.map((worker) => worker.finish()));
    const history: History = {
      lines: this.lines(),
      fenced: await this.effects('fenced'),
      raw: await this.effects('raw'),
      faults: { frozen: this.frozen, killed: this.killed, storeLost: this.storeLost },
    };
    const wrong = [...ends.flat(), ...broken(history, promises)];
    const grants = history.lines.filter(({ verb, phase, side }) => {
      return side === 'client' && verb === 'acquire' && phase === 'ok';
    });
    if (grants.length < 10) wrong.push(`only ${grants.length} grants: the run shows nothing`);
    return wrong;
  }

  private async effects(kind: string): Promise<Map<string, readonly Effect[]>> {
    const client = new Redis(this.resourceServer.url);
    try {
      const all = new Map<string, readonly Effect[]>();
      for (const name of this.names) {
        const texts = await client.lrange(`${kind}:${name}`, 0, -1);
        all.set(
          name,
          texts.map((text) => JSON.parse(text) as Effect),
        );
      }
      return all;
    } finally {
      client.disconnect();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.workers.map((worker) => worker.destroy()));
    await this.resourceServer.stop();
    const keep = process.env['TURNGATE_CHAOS_HISTORY'];
    if (keep !== undefined)
      cpSync(this.historyDir, join(keep, `${chaosSeed}-${Date.now()}`), { recursive: true });
    await this.dir.remove();
  }
}

/** Starts the workers; `await using` ends everything. */
export async function startChaos(options: ChaosOptions): Promise<Chaos> {
  // What is protected lives in a server of its own, which no fault touches.
  const [dir, resource] = await Promise.all([temporaryDir('chaos'), startRedis()]);
  const chaos = new Chaos(options, dir, resource);
  try {
    const workers = Array.from({ length: options.workers ?? 3 }, () => chaos.addWorker());
    await Promise.all(workers);
    return chaos;
  } catch (error) {
    await chaos[Symbol.asyncDispose]();
    throw error;
  }
}
