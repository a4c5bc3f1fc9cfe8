/** Several shop processes behind one port: this one only starts them again when they die. */
import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';

/** What a worker is told when it is known. */
export interface WorkerNews {
  readonly channelUrl: string;
}

/** Running workers. */
export interface Processes {
  /** The port they all listen on; known when every one of them listens. */
  readonly port: number;
  /** Tells all of them, also those that come later. */
  tell(news: WorkerNews): void;
  stop(): Promise<void>;
}

/** A process that dies sooner is started again only after this, so that a bad setting burns no CPU. */
const restartPauseMs = 1_000;

/** True in a process that `startProcesses` has started. */
export const isWorker: boolean = cluster.isWorker;

/** Called in a worker: hears the news, now or later. */
export function onNews(take: (news: WorkerNews) => void): void {
  process.on('message', (message) => take(message as WorkerNews));
}

/**
 * Starts them with `env` on top of this process's own. Rejects when one ends before it listens.
 *
 * They end with this process, also when it is killed.
 */
export async function startProcesses(
  count: number,
  env: Record<string, string>,
  say: (line: string) => void,
): Promise<Processes> {
  // They accept by themselves. Passed on by this process, a connection is lost without an end when
  // the one it was meant for dies before it says that it has it.
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  let news: WorkerNews | undefined;
  let stopping = false;
  const fork = (): Worker => {
    const worker = cluster.fork(env);
    const bornMs = Date.now();
    worker.on('listening', () => {
      say(`process ${worker.process.pid} listens`);
      if (news !== undefined) worker.send(news);
    });
    worker.on('exit', (code, signal) => {
      if (stopping || code === 0) return; // 0: it was asked to stop, as by Ctrl-C.
      say(`process ${worker.process.pid} ended with ${signal ?? code}; starting another`);
      const pauseMs = Date.now() - bornMs < restartPauseMs ? restartPauseMs : 0;
      setTimeout(() => stopping || fork(), pauseMs);
    });
    return worker;
  };
  const ports = await Promise.all(Array.from({ length: count }, () => listening(fork())));
  const workers = (): Worker[] =>
    Object.values(cluster.workers ?? {}).flatMap((one) => (one && !one.isDead() ? [one] : []));
  return {
    port: ports[0] as number,
    tell(next) {
      news = next;
      for (const worker of workers()) worker.send(next);
    },
    async stop() {
      stopping = true;
      const ended = workers().map((worker) => once(worker, 'exit'));
      for (const worker of workers()) worker.process.kill('SIGTERM');
      await Promise.all(ended);
    },
  };
}

async function listening(worker: Worker): Promise<number> {
  const [address] = await Promise.race([
    once(worker, 'listening'),
    once(worker, 'exit').then(([code]) => {
      throw new Error(`a process ended with ${code} before it listened`);
    }),
  ]);
  return (address as { port: number }).port;
}
