// Fails when the shape of the house is broken: a wrong import arrow, a cycle, an over-long file or
// function, hidden time or chance, an undocumented public name, a folder missing from the
// architecture page. Usage: node scripts/tidy.mjs [root]
import { pathToFileURL } from 'node:url';
import { checkImpurity, checkLengths, checkStyle } from './tidy/code.mjs';
import { loadHouse } from './tidy/house.mjs';
import { checkArrows, checkConsumers, checkCycles } from './tidy/imports.mjs';
import { checkDocumentedFolders, checkDoors } from './tidy/public.mjs';

// ARROWS: folder of packages/turngate/src → folders it may import (its own is always allowed).
// `stores/*` and alike: each subfolder is a house of its own and may not see its siblings.
// A folder that is not listed may not exist: a new one starts with a line here.
const BASE = ['core', 'contract', 'runtime'];
const FEATURES = [
  'lock',
  'idempotency',
  'flow',
  'message',
  'job',
  'stock',
  'saga',
  'reconcile',
  'token',
  'once',
];
const EDGES = [...BASE, ...FEATURES, 'gate', 'http', 'admin'];

export const ARROWS = {
  core: [],
  contract: ['core'],
  runtime: ['core'],
  claim: ['core', 'contract'],
  'stores/sql': BASE,
  'stores/postgres': [...BASE, 'stores/sql'],
  'stores/mysql': [...BASE, 'stores/sql'],
  'stores/sqlite': [...BASE, 'stores/sql'],
  'stores/*': BASE,
  ...Object.fromEntries(FEATURES.map((feature) => [feature, [...BASE, 'claim']])),
  // Lua on a Redis client handed in: what fences and limiters share.
  redis: ['core'],
  fence: [...BASE, 'redis'],
  limiter: [...BASE, 'redis'],
  token: [...BASE, 'redis'],
  saga: [...BASE, 'claim', 'idempotency'], // Sagas are staged operations.
  gate: [...BASE, 'lock', 'idempotency', 'flow'],
  http: [...BASE, 'idempotency', 'gate'],
  admin: [...BASE, 'gate'],
  // Runs in browsers: nothing that needs a server.
  client: ['core', 'runtime'],
  'integrations/*': EDGES,
  // Tells what a database error means, under whatever an ORM makes of it.
  'integrations/orm': [...EDGES, 'stores/sql'],
  'brokers/*': EDGES,
  cli: [...BASE, 'admin', 'stores/*'],
  telemetry: ['core', 'runtime'],
  // Published suites: they need an assertion library, and nothing in the library needs them.
  conformance: [...BASE, 'lock', 'idempotency'],
};

// Node modules a folder may import; a folder that is not listed may import any `node:` module.
// core is values only, and hashing a value is still a value.
export const NODE_MODULES = { core: ['node:crypto'] };

export const LIMITS = { fileLines: 400, fileLinesWarning: 250, functionLines: 70 };

const RULES = [
  checkArrows,
  checkConsumers,
  checkCycles,
  checkLengths,
  checkImpurity,
  checkStyle,
  checkDoors,
  checkDocumentedFolders,
];

/** Returns {violations, warnings, notes, fileCount}; each violation is {path, line, rule, todo}. */
export function tidy(root) {
  const house = loadHouse(root, { arrows: ARROWS, nodeModules: NODE_MODULES, limits: LIMITS });
  const report = { violations: [], warnings: [], notes: [], fileCount: house.fileCount };
  for (const rule of RULES) rule(house, report);
  return report;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { violations, warnings, notes, fileCount } = tidy(process.argv[2] ?? process.cwd());
  for (const note of notes) console.log(`note: ${note}`);
  for (const { path, line, todo } of warnings) console.log(`warning: ${path}:${line} ${todo}`);
  for (const { path, line, rule, todo } of violations)
    console.log(`${path}:${line} [${rule}] ${todo}`);
  console.log(
    `tidy: ${fileCount} files, ${warnings.length} warnings, ${violations.length} violations`,
  );
  process.exitCode = violations.length === 0 ? 0 : 1;
}
