/** The servers of the lab: separate Node processes, which can be killed and started again. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { DatabaseAddress } from './database.ts';
import type { Answer } from './payment.ts';
import { databaseVariables, type ServerMessage, type Task } from './wire.ts';

/** Two: races must not be hidden by what one process knows. */
const serverCount = 2;
const workerFile = fileURLToPath(new URL('./worker.js', import.meta.url));

interface Call {
  settle(answer: Answer): void;
  reached(): void;
}

class Server {
  readonly ready: Promise<void>;
  readonly exited: Promise<void>;
  private readonly child: ChildProcess;
  private readonly calls = new Map<number, Call>();
  private nextId = 0;
  private ending = false;

  constructor(address: DatabaseAddress) {
    const variables = {
      [databaseVariables.url]: address.url,
      [databaseVariables.schema]: address.schema,
    };
    this.child = fork(workerFile, { env: { ...process.env, ...variables }, execArgv: [] });
    this.exited = once(this.child, 'exit').then(() => {
      for (const call of this.calls.values()) {
        call.settle({ kind: 'failed', why: 'the server died' });
      }
      this.calls.clear();
    });
    const early = this.exited.then(() => {
      if (!this.ending) throw new Error('a server of the lab ended by itself');
    });
    // Rejects only a start; later deaths are seen by `alive`.
    this.ready = Promise.race([this.firstMessage(), early]);
    this.ready.catch(() => {});
    early.catch(() => {});
    this.child.on('message', (message: ServerMessage) => this.receive(message));
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
        settle({ kind: 'failed', why: 'the server died' });
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

  private receive(message: ServerMessage): void {
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

export class Fleet {
  private readonly address: DatabaseAddress;
  private readonly servers: Server[];
  private stopped = false;

  constructor(address: DatabaseAddress) {
    this.address = address;
    this.servers = Array.from({ length: serverCount }, () => new Server(address));
  }

  async ready(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.ready));
  }

  /** Sends a payment to a server; numbers beyond the last go round. */
  async call(number: number, task: Task, onReached: () => void = () => {}): Promise<Answer> {
    return await this.server(number).call(task, onReached);
  }

  /** kill -9 now; a new server in its place is starting when this returns. */
  async killAndReplace(number: number): Promise<void> {
    await this.server(number).kill();
    if (!this.stopped) this.servers[number % serverCount] = new Server(this.address);
  }

  async replaceAll(): Promise<void> {
    await Promise.all(this.servers.map((_, number) => this.killAndReplace(number)));
  }

  /** True when nobody works any more, abandoned requests included. */
  get idle(): boolean {
    return this.servers.every((server) => server.idle);
  }

  get healthy(): boolean {
    return this.servers.every((server) => server.healthy);
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await Promise.all(this.servers.map((server) => server.kill()));
  }

  private server(number: number): Server {
    const server = this.servers[number % serverCount];
    if (server === undefined) throw new RangeError(`there is no server ${number}`);
    return server;
  }
}
