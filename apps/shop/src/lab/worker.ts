/** One "server" of the lab: a process of its own that pays through the implementation it is told. */
import { setTimeout as sleep } from 'node:timers/promises';
import { openPool } from './database.ts';
import { type ImplementationId, implementations } from './implementations.ts';
import type { Answer, Payer, Trial } from './payment.ts';
import { databaseVariables, type ServerMessage, type Task, type TaskMessage } from './wire.ts';

const connectionsMax = 16;

function serve(): void {
  const { [databaseVariables.url]: url, [databaseVariables.schema]: schema } = process.env;
  if (url === undefined || schema === undefined || process.send === undefined) {
    throw new Error('this file is started by the lab, not by hand');
  }
  const pool = openPool({ url, schema }, connectionsMax);
  const payers = new Map<ImplementationId, Payer>();
  const payerOf = (id: ImplementationId): Payer => {
    const payer = payers.get(id) ?? implementations[id].open(pool);
    payers.set(id, payer);
    return payer;
  };
  // Ctrl-C reaches the whole process group; the lab ends its servers itself.
  process.on('SIGINT', () => {});
  process.on('disconnect', () => process.exit());
  process.on('message', ({ id, task }: TaskMessage<Task>) => {
    void answerOf(payerOf(task.implementation), id, task).then((answer) =>
      tell({ kind: 'answer', id, answer }),
    );
  });
  tell({ kind: 'ready' });
}

async function answerOf(payer: Payer, id: number, task: Task): Promise<Answer> {
  try {
    return await payer.pay(task.request, trialOf(id, task));
  } catch (error) {
    return { kind: 'failed', why: error instanceof Error ? error.message : String(error) };
  }
}

function trialOf(id: number, { workMs, stop }: Task): Trial {
  return {
    work: async () => await sleep(workMs),
    async at(point) {
      if (stop?.point !== point) return;
      if (stop.action === 'throw') throw new Error(`the lab made this attempt fail ${point}`);
      tell({ kind: 'reached', id });
      await new Promise<never>(() => {});
    },
  };
}

function tell(message: ServerMessage<Answer>): void {
  process.send?.(message);
}

serve();
