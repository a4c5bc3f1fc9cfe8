/** What all auditors need: one number from the tables. */
import type { SqlSession } from 'turngate/contract';

/** The number in column `n` of the first row; null counts as none. */
export async function countOf(sql: SqlSession, text: string): Promise<number> {
  const { rows } = await sql.query(text, []);
  return Number(rows[0]?.['n'] ?? 0);
}
