/** A holder in a process of its own that can be paused. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { until } from '../support/clock.ts';

interface Message {
  readonly verb: string;
  readonly answer: unknown;
}

export class Holder {
  readonly process: ChildProcess;
  private readonly answers: Message[] = [];

  constructor(args: readonly string[]) {
    this.process = fork(fileURLToPath(new URL('fence-child.mjs', import.meta.url)), args);
    this.process.on('message', (message) => this.answers.push(message as Message));
  }

  /** Sends a command and waits for its answer. */
  async ask(verb: string): Promise<unknown> {
    this.tell(verb);
    return await this.answer(verb);
  }

  tell(verb: string): void {
    this.process.send(verb);
  }

  /** The next answer to a command sent with `tell`. */
  async answer(verb: string): Promise<unknown> {
    const find = () => this.answers.findIndex((message) => message.verb === verb);
    await until(`the holder answers "${verb}"`, () => find() >= 0 || this.gone(), 60_000);
    if (find() < 0) throw new Error(`the holder ended before it answered "${verb}"`);
    return this.answers.splice(find(), 1)[0]?.answer;
  }

  /** SIGSTOP; returns when the kernel says that it has stopped. */
  async pause(): Promise<void> {
    this.process.kill('SIGSTOP');
    const state = () => readFileSync(`/proc/${this.process.pid}/stat`, 'utf8').split(') ')[1]?.[0];
    await until('the holder has stopped', () => state() === 'T');
  }

  resume(): void {
    this.process.kill('SIGCONT');
  }

  async kill(): Promise<void> {
    if (this.gone()) return;
    this.process.kill('SIGKILL');
    await once(this.process, 'exit');
  }

  private gone(): boolean {
    return this.process.exitCode !== null || this.process.signalCode !== null;
  }
}
