/** Measured times, printed at the end of a file and kept for the docs. */
import { appendFileSync } from 'node:fs';
import { afterAll } from 'vitest';

const figures: string[] = [];

afterAll(() => {
  for (const figure of figures) console.info(`chaos: ${figure}`);
  const file = process.env['TURNGATE_CHAOS_FIGURES'];
  if (file !== undefined) appendFileSync(file, figures.map((figure) => `${figure}\n`).join(''));
});

/** Notes a time. */
export function figure(what: string, ms: number): void {
  figures.push(`${what}: ${Math.round(ms)} ms`);
}
