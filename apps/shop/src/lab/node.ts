/** One node of the lab: a process of its own that plays the contender it is told. */
import { isTurngateError } from 'turngate';
import { ShopError } from '../trade/shop-error.ts';
import { createChance } from './chance.ts';
import { openPool } from './database.ts';
import { FarSocket } from './far-socket.ts';
import { Refused } from './payment.ts';
import { Players } from './players.ts';
import type { Reply, Trial } from './scenario.ts';
import {
  databaseVariables,
  type NodeCall,
  type NodeTask,
  nodeVariables,
  type ServerMessage,
  type TaskMessage,
} from './wire.ts';

const connectionsMax = 16;
/** A statement's way to the database. Long enough that two nodes read before one of them writes. */
const tripMs = { min: 2, max: 6 };

function serve(): void {
  const { [databaseVariables.url]: url, [databaseVariables.schema]: schema } = process.env;
  const { [nodeVariables.number]: number, [nodeVariables.seed]: seed } = process.env;
  if (url === undefined || schema === undefined || process.send === undefined) {
    throw new Error('this file is started by the lab, not by hand');
  }
  const chance = createChance(Number(seed), `node ${number}`);
  const stream = (): FarSocket => new FarSocket(() => chance.between(tripMs.min, tripMs.max));
  const players = new Players(Number(number), openPool({ url, schema }, connectionsMax, stream));
  // Ctrl-C reaches the whole process group; the lab ends its nodes itself.
  process.on('SIGINT', () => {});
  process.on('disconnect', () => process.exit());
  process.on('message', ({ id, task }: TaskMessage<NodeTask>) => {
    const work = 'end' in task ? () => players.end() : () => players.play(task, trialOf(id, task));
    void replyOf(work).then((answer) => tell({ kind: 'answer', id, answer }));
  });
  tell({ kind: 'ready' });
}

/** The shop's "no" is an answer; everything else says nothing about the effect. */
async function replyOf(work: () => Promise<Reply>): Promise<Reply> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ShopError) return { kind: 'refused', code: error.code };
    if (error instanceof Refused) return { kind: 'refused', code: error.message };
    if (isTurngateError(error, 'REFUSED')) return { kind: 'refused', code: error.message };
    return { kind: 'failed', why: error instanceof Error ? error.message : String(error) };
  }
}

function trialOf(id: number, { hangAt }: NodeCall): Trial {
  return {
    async at(point) {
      if (hangAt !== point) return;
      tell({ kind: 'reached', id });
      await new Promise<never>(() => {});
    },
  };
}

function tell(message: ServerMessage<Reply>): void {
  process.send?.(message);
}

serve();
