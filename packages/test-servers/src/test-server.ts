import { readFileSync } from 'node:fs';
import { listensOn } from './port-owner.ts';
import { type SupervisedProcess, startSupervised } from './supervised-process.ts';
import type { TemporaryDir } from './temporary-dir.ts';
import { TestServerError } from './test-server-error.ts';
import { settlesWithin, sleep } from './waiting.ts';

/** One running server process. It keeps Node alive until it is stopped or has ended. */
export interface TestServer extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  readonly url: string;
  /** Process number of the server itself; another one after `restart`. */
  readonly pid: number;
  /** Ends the process and removes its data. Calling it again does nothing more. */
  stop(): Promise<void>;
  /** SIGKILL; resolves when the process is gone. The data stays for `restart`. */
  kill(): Promise<void>;
  /** SIGSTOP: connections stay open and nothing is answered. Resolves when it stands still. */
  pause(): Promise<void>;
  /** SIGCONT after `pause`. */
  resume(): Promise<void>;
  /** Ends the process in order if it runs, starts it on the same port and data, waits for it. */
  restart(): Promise<void>;
  /** The last lines that it logged. */
  lastLines(): Promise<string>;
}

/** Where one server lives. */
export interface Place {
  readonly dir: string;
  readonly port: number;
  /** All ports that the recipe asked for; the first is `port`. */
  readonly ports: readonly number[];
}

/** How one server is run. */
export interface Recipe {
  /** For messages. */
  readonly name: string;
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly url: string;
  /** Must answer by itself within seconds, and must not throw while the server is not there. */
  isReady(): Promise<boolean>;
}

const HOST = '127.0.0.1';
const POLL_MS = 5;
const ORDERLY_END_MAX_MS = 15_000;
const STANDSTILL_MAX_MS = 5_000;

/** A server and its way through life; `launch` and `untilReady` are one `start` in two steps. */
export class ServerNode implements TestServer {
  readonly host: string = HOST;
  readonly port: number;
  readonly url: string;
  private readonly recipe: Recipe;
  private readonly dir: TemporaryDir;
  private readonly startTimeoutMs: number;
  private process: SupervisedProcess | undefined;
  private stopped: Promise<void> | undefined;
  private readonly companions: TestServer[] = [];

  constructor(recipe: Recipe, place: Place, dir: TemporaryDir, startTimeoutMs: number) {
    this.recipe = recipe;
    this.dir = dir;
    this.port = place.port;
    this.url = recipe.url;
    this.startTimeoutMs = startTimeoutMs;
  }

  get pid(): number {
    if (this.process === undefined) throw new Error(`${this.recipe.name} was never started`);
    return this.process.pid;
  }

  async launch(): Promise<void> {
    if (this.stopped) throw new Error(`${this.recipe.name} was stopped, and its data is gone`);
    const { command, env = {} } = this.recipe;
    this.process = await startSupervised({ command, env, workingDir: this.dir.path });
  }

  async untilReady(): Promise<void> {
    const { name, isReady } = this.recipe;
    const endMonoMs = performance.now() + this.startTimeoutMs;
    while (!((await isReady()) && listensOn(this.pid, this.port))) {
      if (!this.process?.isAlive()) throw await this.startFailure(`${name} ended at once`);
      if (performance.now() > endMonoMs) {
        throw await this.startFailure(`${name} was not ready within ${this.startTimeoutMs} ms`);
      }
      await sleep(POLL_MS);
    }
  }

  private async startFailure(what: string): Promise<TestServerError> {
    const message = `${what}; its last log lines:\n${await this.lastLines()}`;
    return new TestServerError('START_FAILED', message);
  }

  /** Another server that only this one needs. */
  alsoStop(companion: TestServer): void {
    this.companions.push(companion);
  }

  stop(): Promise<void> {
    this.stopped ??= this.remove();
    return this.stopped;
  }

  private async remove(): Promise<void> {
    await this.kill();
    await Promise.all([this.dir.remove(), ...this.companions.map((other) => other.stop())]);
  }

  async kill(): Promise<void> {
    this.process?.signal('SIGKILL');
    await this.process?.exited;
  }

  async pause(): Promise<void> {
    this.process?.signal('SIGSTOP');
    const endMonoMs = performance.now() + STANDSTILL_MAX_MS;
    while (this.process?.isAlive() && !isStandingStill(this.pid)) {
      if (performance.now() > endMonoMs)
        throw new Error(`${this.recipe.name} does not stand still`);
      await sleep(1);
    }
  }

  async resume(): Promise<void> {
    this.process?.signal('SIGCONT');
  }

  async restart(): Promise<void> {
    await this.end();
    await this.launch();
    await this.untilReady();
  }

  private async end(): Promise<void> {
    if (!this.process?.isAlive()) return;
    this.process.signal('SIGCONT');
    this.process.signal('SIGTERM');
    if (!(await settlesWithin(this.process.exited, ORDERLY_END_MAX_MS))) await this.kill();
  }

  async lastLines(): Promise<string> {
    return (await this.process?.lastLines()) ?? '';
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}

/** Every thread has stopped. Only Linux tells; elsewhere the signal is trusted. */
function isStandingStill(pid: number): boolean {
  if (process.platform !== 'linux') return true;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).startsWith('T');
  } catch {
    return true; // It has ended.
  }
}
