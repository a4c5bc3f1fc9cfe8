/** What a suite needs from a test runner; node:test, vitest, mocha and jest all have it. */
export interface Runner {
  describe(name: string, body: () => void): unknown;
  it(name: string, law: () => Promise<void>): unknown;
}

/** One law: its name is the sentence a store promises. */
export interface Law<World> {
  readonly name: string;
  /** Why it does not apply to this target; undefined when it does. */
  readonly skipped?: (world: World) => string | undefined;
  readonly prove: (world: World) => Promise<void>;
}

/**
 * Registers every law as one test. A law that does not apply is registered too, under a name that
 * says why, so that a report never looks more complete than it is.
 */
export function registerLaws<World>(
  runner: Runner,
  suite: string,
  laws: readonly Law<World>[],
  world: World,
): void {
  runner.describe(suite, () => {
    for (const { name, skipped, prove } of laws) {
      const reason = skipped?.(world);
      if (reason === undefined) runner.it(name, () => prove(world));
      else runner.it(`${name} [not applicable: ${reason}]`, async () => {});
    }
  });
}
