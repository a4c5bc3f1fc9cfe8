/** Asking several independent nodes at once and deciding as soon as the answer is certain. */
import type { Runtime } from '../../runtime/runtime.ts';
import { waitFor } from '../../runtime/wait.ts';

/** What the nodes said so far. */
export interface Votes<T> {
  readonly answers: readonly T[];
  readonly errors: readonly unknown[];
  /** Nodes that have said nothing yet. */
  readonly open: number;
}

/**
 * Asks every node and resolves with the first verdict; nobody is waited for after that. A node that
 * says nothing for `limitMs` counts as an error.
 *
 * @param verdict undefined while it still depends on the nodes that are open; it must come to one
 *   when none is
 */
export function poll<T, Verdict>(
  runtime: Runtime,
  calls: readonly Promise<T>[],
  limitMs: number,
  verdict: (votes: Votes<T>) => Verdict | undefined,
): Promise<Verdict> {
  return new Promise((resolve, reject) => {
    const answers: T[] = [];
    const errors: unknown[] = [];
    const look = (): void => {
      try {
        const open = calls.length - answers.length - errors.length;
        const decided = verdict({ answers, errors, open });
        if (decided !== undefined) resolve(decided);
      } catch (error) {
        reject(error);
      }
    };
    const onCut = (): Error => new Error(`no answer within ${limitMs} ms`);
    for (const call of calls) {
      waitFor(runtime, call, { limitMs, onCut }).then(
        (answer) => {
          answers.push(answer);
          look();
        },
        (error: unknown) => {
          errors.push(error);
          look();
        },
      );
    }
  });
}
