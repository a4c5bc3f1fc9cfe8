// Every test that docs/idempotency-experiments.md names is there, under that name, and no experiment is
// without a row. Usage: node scripts/experiments.mjs
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const page = 'docs/idempotency-experiments.md';
const folders = ['packages/turngate/test', 'packages/turngate/src', 'compat/test'];
/** The log has odd numbers only. */
const last = 67;

const rows = readFileSync(join(root, page), 'utf8').split('\n');
const problems = [];

/** The sources of that name; two folders can have one. */
function sourcesOf(file) {
  const paths = folders.map((folder) => join(root, folder, file)).filter(existsSync);
  return paths.map((path) => readFileSync(path, 'utf8'));
}

for (let number = 1; number <= last; number += 2) {
  const row = rows.find((line) => line.startsWith(`| L${number} `));
  const proofs = [...(row ?? '').matchAll(/([\w./-]+\.ts): ([^;|(]+)/g)];
  if (proofs.length === 0) problems.push(`L${number}: no row that names a test`);
  for (const [, file, name] of proofs) {
    const sources = sourcesOf(file);
    if (sources.length === 0) problems.push(`L${number}: there is no ${file}`);
    else if (!sources.some((source) => source.includes(name.trim()))) {
      problems.push(`L${number}: ${file} has no test "${name.trim()}"`);
    }
  }
}
for (const problem of problems) console.log(`${page}: ${problem}`);
console.log(`experiments: ${problems.length} problems`);
process.exitCode = problems.length === 0 ? 0 : 1;
