/** The processes of the lab, which can be killed and started again. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DatabaseAddress } from './database.ts';
import { databaseVariables, type ServerMessage } from './wire.ts';

/** What the processes of a fleet are. */
export interface FleetOptions<Answer> {
  readonly address: DatabaseAddress;
  readonly count: number;
  readonly workerFile: string;
  /** What each process finds in its environment besides the database. */
  variables?(number: number): Readonly<Record<string, string>>;
  /** The answer of a process that died before it could answer. */
  readonly died: Answer;
}

const idleLimitMs = 10_000;

interface Call<Answer> {
  settle(answer: Answer): void;
  reached(): void;
}

class Server<Task, Answer> {
  readonly ready: Promise<void>;
  readonly exited: Promise<void>;
  private readonly died: Answer;
  private readonly child: ChildProcess;
  private readonly calls = new Map<number, Call<Answer>>();
  private nextId = 0;
  private ending = false;

  constructor({ address, workerFile, variables, died }: FleetOptions<Answer>, number: number) {
    this.died = died;
    const env = {
      ...process.env,
      [databaseVariables.url]: address.url,
      [databaseVariables.schema]: address.schema,
      ...variables?.(number),
    };
    this.child = fork(workerFile, { env, execArgv: [] });
    this.exited = once(this.child, 'exit').then(() => {
      for (const call of this.calls.values()) call.settle(died);
      this.calls.clear();
    });
    const early = this.exited.then(() => {
      if (!this.ending) throw new Error('a server of the lab ended by itself');
    });
    // Rejects only a start; later deaths are seen by `alive`.
    this.ready = Promise.race([this.firstMessage(), early]);
    this.ready.catch(() => {});
    early.catch(() => {});
    this.child.on('message', (message: ServerMessage<Answer>) => this.receive(message));
    this.child.on('error', () => {}); // A message to a dying server; its exit tells the callers.
  }

  /** False when it ended and nobody killed it. */
  get healthy(): boolean {
    return this.ending || (this.child.exitCode === null && this.child.signalCode === null);
  }

  get idle(): boolean {
    return this.calls.size === 0;
  }

  async call(task: Task, onReached: () => void): Promise<Answer> {
    await this.ready;
    const id = ++this.nextId;
    return await new Promise((settle) => {
      this.calls.set(id, { settle, reached: onReached });
      this.child.send({ id, task }, (error) => {
        if (error === null) return;
        this.calls.delete(id);
        settle(this.died);
      });
    });
  }

  async kill(): Promise<void> {
    this.ending = true;
    this.child.kill('SIGKILL');
    await this.exited;
  }

  private async firstMessage(): Promise<void> {
    await once(this.child, 'message');
  }

  private receive(message: ServerMessage<Answer>): void {
    if (message.kind === 'ready') return;
    const call = this.calls.get(message.id);
    if (message.kind === 'reached') {
      call?.reached();
      return;
    }
    this.calls.delete(message.id);
    call?.settle(message.answer);
  }
}

export class Fleet<Task, Answer> {
  readonly count: number;
  private readonly options: FleetOptions<Answer>;
  private readonly servers: Server<Task, Answer>[];
  private stopped = false;

  constructor(options: FleetOptions<Answer>) {
    this.options = options;
    this.count = options.count;
    this.servers = Array.from(
      { length: options.count },
      (_, number) => new Server(options, number),
    );
  }

  async ready(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.ready));
  }

  /** Sends a task to a server; numbers beyond the last go round. */
  async call(number: number, task: Task, onReached: () => void = () => {}): Promise<Answer> {
    return await this.server(number).call(task, onReached);
  }

  /** The same task for every server. */
  async callAll(task: Task): Promise<Answer[]> {
    return await Promise.all(this.servers.map((_, number) => this.call(number, task)));
  }

  /** kill -9 now; a new server in its place is starting when this returns. */
  async killAndReplace(number: number): Promise<void> {
    const server = this.server(number);
    await server.kill();
    const place = number % this.count;
    // Killed by two at once, it is replaced by the first: a second one would be nobody's.
    if (this.stopped || this.servers[place] !== server) return;
    this.servers[place] = new Server(this.options, place);
  }

  async replaceAll(): Promise<void> {
    await Promise.all(this.servers.map((_, number) => this.killAndReplace(number)));
  }

  /** Waits for requests whose clients have left: what they write counts too. */
  async settle(): Promise<void> {
    const deadlineMonoMs = performance.now() + idleLimitMs;
    while (!this.servers.every((server) => server.idle)) {
      if (performance.now() > deadlineMonoMs) throw new Error('requests are still running');
      await sleep(10);
    }
    const healthy = this.servers.every((server) => server.healthy);
    if (!healthy) throw new Error('a process of the lab ended by itself');
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await Promise.all(this.servers.map((server) => server.kill()));
  }

  private server(number: number): Server<Task, Answer> {
    const server = this.servers[number % this.count];
    if (server === undefined) throw new RangeError(`there is no server ${number}`);
    return server;
  }
}
