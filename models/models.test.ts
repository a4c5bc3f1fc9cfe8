/**
 * The models say what they should: the protocols hold in every interleaving, and each wrong variant
 * is refuted. Needs `spin` and `gcc`: without them the laws are skipped, except in CI.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const has = (tool: string): boolean => spawnSync(tool, ['--version']).error === undefined;
const missing = ['spin', 'gcc'].filter((tool) => !has(tool));
const inCi = Boolean(process.env['CI']);

interface Verdict {
  readonly errors: number;
  readonly states: number;
  readonly violated: string | undefined;
}

/** Searches all interleavings of a model variant. */
function verify(folder: string, model: string, defines: readonly string[]): Verdict {
  const path = fileURLToPath(new URL(`${model}.pml`, import.meta.url));
  const options = { cwd: folder, encoding: 'utf8', stdio: 'pipe' } as const;
  execFileSync('spin', ['-a', ...defines.map((name) => `-D${name}`), path], options);
  // SAFETY: only assertions and end states, which is what the laws are.
  execFileSync('gcc', ['-O1', '-DSAFETY', '-o', 'pan', 'pan.c'], options);
  const report = execFileSync('./pan', ['-m200000'], options);
  expect(report).not.toContain('max search depth too small');
  const number = (pattern: RegExp): number => Number(pattern.exec(report)?.[1] ?? Number.NaN);
  return {
    errors: number(/errors: (\d+)/),
    states: number(/(\d+) states, stored/),
    violated: /assertion violated \((.*)\) \(at depth/.exec(report)?.[1],
  };
}

// A law that no longer holds and a wrong variant that is no longer found are both failures.
const laws: readonly (readonly [model: string, variant: string[], violated: string | undefined])[] =
  [
    ['lease-lock', [], undefined],
    ['lease-lock', ['REACHABLE'], 'writes<(3*2)'],
    ['lease-lock', ['NO_FENCE'], 'fence>=newest'],
    ['lease-lock', ['BLIND_RELEASE'], '( !(live[1])&& !(live[2]))&& !(live[3])'],
    ['enter-check', [], undefined],
    ['enter-check', ['TWO_STEPS'], undefined],
    ['enter-check', ['REACHABLE'], 'accepted<4'],
    ['enter-check', ['WRITE_ONLY'], 'counter==accepted'],
    ['enter-check', ['READ_FIRST'], 'counter==accepted'],
    ['enter-check', ['COUNTER_RESET'], 'counter==accepted'],
  ];

if (missing.length > 0 && !inCi) {
  console.warn(
    `SKIPPED: ${laws.length} model laws, because ${missing.join(', ')} is not installed`,
  );
}

describe.skipIf(missing.length > 0 && !inCi)('models', () => {
  let folder: string;
  beforeAll(() => {
    expect(missing, 'install spin and gcc').toEqual([]);
    folder = mkdtempSync(join(tmpdir(), 'turngate-models-'));
  });
  afterAll(() => {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  });

  for (const [model, variant, violated] of laws) {
    const name = [model, ...variant].join(' ');
    it(violated === undefined ? `${name} holds` : `${name} is refuted`, () => {
      const verdict = verify(folder, model, variant);
      console.info(`${name}: ${verdict.states} states, ${verdict.errors} errors`);
      expect(verdict.violated).toBe(violated);
      expect(verdict.errors).toBe(violated === undefined ? 0 : 1);
    });
  }
});
