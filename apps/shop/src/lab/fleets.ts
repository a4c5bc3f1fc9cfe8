/** The two fleets of the lab: servers that take payments, and nodes that play the scenarios. */
import { fileURLToPath } from 'node:url';
import type { DatabaseAddress } from './database.ts';
import { Fleet } from './fleet.ts';
import type { Answer } from './payment.ts';
import type { Reply } from './scenario.ts';
import { type NodeTask, nodeVariables, type Task } from './wire.ts';

export type PaymentServers = Fleet<Task, Answer>;
export type ScenarioNodes = Fleet<NodeTask, Reply>;

/** Races must not be hidden by what one process knows. */
const serverCount = 2;
/** The third shows what only looks right between two. */
const nodeCount = 3;

const died = { kind: 'failed', why: 'the server died' } as const;

export function startPaymentServers(address: DatabaseAddress): PaymentServers {
  return new Fleet({
    address,
    count: serverCount,
    workerFile: fileURLToPath(new URL('./worker.js', import.meta.url)),
    died,
  });
}

export function startScenarioNodes(address: DatabaseAddress, seed: number): ScenarioNodes {
  return new Fleet({
    address,
    count: nodeCount,
    workerFile: fileURLToPath(new URL('./node.js', import.meta.url)),
    variables: (number) => ({
      [nodeVariables.number]: String(number),
      [nodeVariables.seed]: String(seed),
    }),
    died,
  });
}
