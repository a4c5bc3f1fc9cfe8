/** What a storm is, and the one number they share. */
import type { Stage } from '../stage.ts';

export interface Storm {
  readonly title: string;
  /** What the customers do, in one sentence. */
  readonly story: string;
  /** May run beside the storm before it: both are few requests that mostly wait. */
  readonly alongside?: boolean;
  run(stage: Stage): Promise<void>;
}

/**
 * A payment whose provider takes its time. Longer than the gap between two clicks, or the first is
 * done before the second comes and nothing races.
 */
export const slowWorkMs = 400;
