// `npm run check` runs every gate and reports them all; `npm run check -- tidy api` runs some.
// A gate is data: a name and the commands it runs. Commands are plain tools, so each can also be
// run by hand: a red line shows the command.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const library = join(root, 'packages', 'turngate');

/** Tools are started from node_modules/.bin, never through npx: npx would ask the registry. */
const bin = (name, ...args) => ({ run: [join(root, 'node_modules', '.bin', name), ...args] });
const script = (name, ...args) => ({
  run: [process.execPath, join(root, 'scripts', name), ...args],
});
const inLibrary = (command) => ({ ...command, cwd: library });

// `built` gates read dist/ (or types that other workspaces resolve to dist/), so they follow a build.
const GATES = [
  { name: 'build', commands: () => [script('build.mjs')] },
  { name: 'generated', commands: () => [script('generate.mjs', '--check')] },
  {
    name: 'format+lint',
    commands: () => [bin('biome', 'ci', '--error-on-warnings', '--colors=off', '.')],
  },
  { name: 'typed-lint', built: true, commands: () => [bin('oxlint', '--type-aware', '.')] },
  { name: 'types', built: true, commands: typeCommands },
  {
    name: 'tidy',
    commands: () => [script('tidy.mjs'), { run: [process.execPath, '--test', ...scriptTests()] }],
  },
  {
    name: 'knip',
    built: true,
    commands: () => [bin('knip', '--no-progress', '--no-config-hints')],
  },
  {
    name: 'package',
    built: true,
    commands: () => [
      inLibrary(bin('publint', '--strict')),
      inLibrary(bin('attw', '--pack', '.', '--profile', 'esm-only')),
      script('check/package.mjs'),
    ],
  },
  { name: 'api', built: true, commands: () => [script('api-report.mjs')] },
  { name: 'require', built: true, commands: () => [script('check/require.mjs')] },
  {
    name: 'docs',
    built: true,
    commands: () => [
      script('docs-check.mjs'),
      script('lock-tables.mjs'),
      script('experiments.mjs'),
    ],
  },
];

// Listed by name: what a folder or a glob means to `node --test` differs between Node versions.
function scriptTests() {
  const folder = join(root, 'scripts', 'test');
  const names = readdirSync(folder).filter((name) => name.endsWith('.test.mjs'));
  return names.map((name) => join(folder, name));
}

/**
 * One compile per workspace as it is shipped, then the root project, which adds the tests, then
 * compat/, when `npm test` has installed it.
 */
function typeCommands() {
  const projects = ['packages', 'apps'].flatMap((group) =>
    readdirSync(join(root, group)).map((name) => join(group, name, 'tsconfig.json')),
  );
  if (existsSync(join(root, 'compat', 'node_modules'))) projects.push('compat/tsconfig.json');
  return [...projects, 'tsconfig.json']
    .filter((project) => existsSync(join(root, project)))
    .map((project) => bin('tsc', '--noEmit', '-p', project));
}

/** Runs all commands of a gate; returns the output of those that failed, '' when none did. */
function runGate(gate) {
  return gate
    .commands()
    .map(({ run, cwd = root }) => runCommand(run, cwd))
    .join('');
}

function runCommand(run, cwd) {
  const [command, ...args] = run;
  const { status, error, stdout, stderr } = spawnSync(command, args, {
    cwd,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
    env: { ...process.env, NO_COLOR: '1' },
  });
  if (status === 0) return '';
  const line = run.map((part) => part.replace(root, '')).join(' ');
  return `$ ${line}\n${stdout ?? ''}${stderr ?? ''}${error ? `${error.message}\n` : ''}`;
}

function chooseGates(wanted) {
  const unknown = wanted.filter((name) => !GATES.some((gate) => gate.name === name));
  if (unknown.length > 0) {
    console.error(
      `No such step: ${unknown.join(', ')}. Steps: ${GATES.map((g) => g.name).join(' ')}`,
    );
    process.exit(2);
  }
  if (wanted.length === 0) return GATES;
  const chosen = GATES.filter((gate) => wanted.includes(gate.name));
  return chosen.some((gate) => gate.built) ? [...new Set([GATES[0], ...chosen])] : chosen;
}

const failed = [];
for (const gate of chooseGates(process.argv.slice(2))) {
  const startedAt = performance.now();
  const output = runGate(gate);
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  console.log(
    `${gate.name.padEnd(12)} ${seconds.padStart(6)} s  ${output === '' ? 'OK' : 'FAILED'}`,
  );
  if (output === '') continue;
  failed.push(gate.name);
  console.log(output.replace(/^/gm, '    '));
}
console.log(failed.length === 0 ? 'check: all OK' : `check: FAILED ${failed.join(', ')}`);
process.exitCode = failed.length === 0 ? 0 : 1;
