/** Messages between the lab and its processes, over Node's IPC channel. */
import type { ImplementationId } from './implementations.ts';
import type { PayRequest, Point } from './payment.ts';

/** One payment to make, and what shall happen to this attempt. */
export interface Task {
  readonly implementation: ImplementationId;
  readonly request: PayRequest;
  readonly workMs: number;
  /** `hang` waits for ever at the point, so that the process can be killed exactly there. */
  readonly stop?: { readonly point: Point; readonly action: 'throw' | 'hang' } | undefined;
}

/** One call of a scenario. */
export interface NodeCall {
  readonly scenario: string;
  readonly contender: string;
  readonly verb: string;
  readonly input: unknown;
  readonly hangAt?: string | undefined;
}

/** The storm is over: close what the contender has open. */
export interface NodeEnd {
  readonly end: true;
}

export type NodeTask = NodeCall | NodeEnd;

export interface TaskMessage<Task> {
  readonly id: number;
  readonly task: Task;
}

export type ServerMessage<Answer> =
  | { readonly kind: 'ready' }
  | { readonly kind: 'reached'; readonly id: number }
  | { readonly kind: 'answer'; readonly id: number; readonly answer: Answer };

/** Where the database is. Travels in the environment: arguments are visible to every user. */
export const databaseVariables = {
  url: 'TURNGATE_LAB_DATABASE_URL',
  schema: 'TURNGATE_LAB_SCHEMA',
} as const;

/** Which node a process is, and the run's seed. */
export const nodeVariables = { number: 'TURNGATE_LAB_NODE', seed: 'TURNGATE_LAB_SEED' } as const;
