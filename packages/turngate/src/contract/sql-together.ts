/** Several statements in one trip where the client can. */
import type { SqlAnswer, SqlSession, SqlStep } from './sql-session.ts';

/** Where nothing leaves together. */
export const noSteps = (): readonly SqlStep[] => [];

/** Runs the steps in order; a failure skips the rest. */
export async function together(
  session: SqlSession,
  steps: readonly SqlStep[],
): Promise<readonly SqlAnswer[]> {
  if (session.together !== undefined) return await session.together(steps);
  const answers: SqlAnswer[] = [];
  for (const { text, values } of steps) {
    const { rows, affectedRows } = await session.query(text, values);
    answers.push({ rows: (rows ?? []).map(byPosition), affectedRows });
  }
  return answers;
}

/** Objects keep their names in the order of the columns: give each column a name of its own. */
function byPosition(row: Record<string, unknown>): (string | null)[] {
  return Object.values(row).map((value) => {
    if (value === null || value === undefined) return null;
    return value instanceof Uint8Array ? Buffer.from(value).toString('utf8') : String(value);
  });
}
