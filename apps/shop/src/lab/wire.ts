/** Messages between the lab and its servers, over Node's IPC channel. */
import type { ImplementationId } from './implementations.ts';
import type { Answer, PayRequest, Point } from './payment.ts';

/** One payment to make, and what shall happen to this attempt. */
export interface Task {
  readonly implementation: ImplementationId;
  readonly request: PayRequest;
  readonly workMs: number;
  /** `hang` waits for ever at the point, so that the process can be killed exactly there. */
  readonly stop?: { readonly point: Point; readonly action: 'throw' | 'hang' } | undefined;
}

export interface TaskMessage {
  readonly id: number;
  readonly task: Task;
}

export type ServerMessage =
  | { readonly kind: 'ready' }
  | { readonly kind: 'reached'; readonly id: number }
  | { readonly kind: 'answer'; readonly id: number; readonly answer: Answer };

/** Where the database is. Travels in the environment: arguments are visible to every user. */
export const databaseVariables = {
  url: 'TURNGATE_LAB_DATABASE_URL',
  schema: 'TURNGATE_LAB_SCHEMA',
} as const;
