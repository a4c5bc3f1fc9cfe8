// Runs the scenarios of a suite on servers of its own; prints, judges, and stores when asked.
import { readFile, writeFile } from 'node:fs/promises';
import { machine } from './environment.mjs';
import { withSection } from './report.mjs';
import { readSuiteOptions } from './suite-options.mjs';
import { goalText, judged, losing, tableText } from './tables.mjs';

/**
 * A suite is `{id, prepare, open, scenarios}`. A scenario is `{id, names, goals, run}`, and `run`
 * returns tables.
 */
export async function runSuite(suite, args) {
  const names = suite.scenarios.flatMap(({ id, names: rows = [] }) => [id, ...rows]);
  const options = readSuiteOptions(suite.id, args, [...new Set(names)]);
  if (options === undefined) return;
  const signal = stopSignal();
  try {
    await suite.prepare?.(say, signal);
    const results = await measured(suite, options, signal);
    const goals = judged(
      suite.scenarios.flatMap((scenario) => scenario.goals ?? []),
      results.tables,
    );
    console.log(`\nGoals\n${goalText(goals)}\n\nWhere Turngate loses\n${losing(results.tables)}`);
    if (options.write) await write(suite.id, { ...results, goals });
    blameFailures(results.tables);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

const say = (text) => process.stderr.write(`bench: ${text}\n`);

function stopSignal() {
  const stopping = new AbortController();
  for (const [name, exitCode] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ]) {
    process.once(name, () => {
      process.exitCode = exitCode;
      say('stopping after this slice');
      stopping.abort(new Error('interrupted'));
    });
  }
  return stopping.signal;
}

async function measured(suite, options, signal) {
  const opened = await suite.open({ options, signal, say });
  try {
    const results = {
      takenAt: new Date().toISOString(),
      environment: { ...machine(), ...opened.versions },
      options,
      tables: [],
    };
    for (const scenario of chosenScenarios(suite.scenarios, options.only)) {
      signal.throwIfAborted();
      const tables = await scenario.run({ ...opened, options, signal, say });
      results.tables.push(...tables);
      for (const table of tables) console.log(`\n${table.title}\n${tableText(table)}`);
    }
    return results;
  } finally {
    await opened.stop();
  }
}

/** Scenarios that are named; when only rows are, every scenario that has one of them. */
function chosenScenarios(scenarios, only) {
  if (only === undefined) return scenarios;
  const named = scenarios.filter(({ id }) => only.includes(id));
  if (named.length > 0) return named;
  return scenarios.filter(({ names = [] }) => names.some((name) => only.includes(name)));
}

/** A failed call, a lost lock, two holders: no ratio is worth that. */
function blameFailures(tables) {
  for (const { title, rows } of tables) {
    for (const { label, ours, failures = {}, values } of rows) {
      const { overlaps = 0, lost = 0 } = values;
      if (!ours || Object.keys(failures).length + overlaps + lost === 0) continue;
      say(`${title}: ${label} FAILED: ${JSON.stringify({ ...failures, overlaps, lost })}`);
      process.exitCode = 1;
    }
  }
}

async function write(id, results) {
  const day = results.takenAt.slice(0, 10);
  const name = `${day}-${results.takenAt.slice(11, 16).replace(':', '')}-${id}.json`;
  await writeFile(
    new URL(`../results/${name}`, import.meta.url),
    `${JSON.stringify(results, null, 1)}\n`,
  );
  const page = new URL(`../../docs/bench-${id}.md`, import.meta.url);
  const { cores, processor, ...versions } = results.environment;
  const facts = [
    `Taken on ${day}: ${cores} cores (${processor}), shared by load and servers;`,
    `${Object.entries(versions)
      .map(([what, version]) => `${what} ${version}`)
      .join(', ')}.`,
    `Raw figures: [bench/results/${name}](../bench/results/${name}).`,
  ];
  const tables = results.tables.map((table) =>
    [`### ${table.title}`, table.note, tableText(table)].filter(Boolean).join('\n\n'),
  );
  const sections = {
    figures: `\n${[facts.join('\n'), ...tables].join('\n\n')}\n`,
    goals: `\n${goalText(results.goals)}\n`,
    losing: `\n${losing(results.tables)}\n`,
  };
  let text = await readFile(page, 'utf8');
  for (const [section, content] of Object.entries(sections)) {
    text = withSection(text, section, content);
  }
  await writeFile(page, text);
  say(`wrote bench/results/${name} and docs/bench-${id}.md`);
}
