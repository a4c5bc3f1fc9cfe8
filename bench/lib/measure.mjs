// Opens the variants of a scenario, warms them up and interleaves them.
import { drive } from './drive.mjs';
import { interleave } from './interleave.mjs';

/**
 * Returns the rows of one scenario over one network. `clients` are opened pools; `reset` empties
 * the tables of keys after the warm-up.
 */
export async function measure(scenario, { clients, reset, options, inFlight, signal, onRound }) {
  const opened = [scenario.base, ...scenario.variants].map((variant) => ({
    ...variant,
    ...variant.open(clients),
  }));
  try {
    const variants = opened.map(({ id, label, goals, ...run }) => {
      const known = { id, label, goals };
      const slice = () => sliceOf(run, scenario.requests(), { calls: options.calls, inFlight });
      return { ...known, slice };
    });
    for (const { slice } of variants) {
      signal.throwIfAborted();
      await slice(); // Opens connections, prepares statements, lets V8 compile.
    }
    await reset();
    const [base, ...others] = variants;
    return await interleave({ base, variants: others, rounds: options.rounds, signal, onRound });
  } finally {
    for (const { close } of opened) await close?.();
  }
}

async function sliceOf({ call, state }, requests, { calls, inFlight }) {
  const executionsBefore = state?.executions;
  const result = await drive({
    calls,
    inFlight,
    async call() {
      if ((await call(requests.next())) === undefined) throw noResult();
    },
  });
  // Keys are never used by two slices, so each key of this slice must have run in it, once.
  if (state !== undefined && requests.fresh !== undefined) {
    const extra = state.executions - executionsBefore - requests.fresh;
    if (extra !== 0) result.failures.EXECUTIONS_WRONG = Math.abs(extra);
  }
  return result;
}

/** A caller who is told "it is a repeat" and not what came out has not been answered. */
function noResult() {
  return Object.assign(new Error('no result'), { code: 'NO_RESULT' });
}
