// Writes the SQL and Lua files of the stores into TypeScript modules, so that the published package needs no
// file reads at run time and survives bundlers.   node scripts/generate.mjs [--check]
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { luaModule } from './lib/lua-scripts.mjs';

const root = fileURLToPath(new URL('../packages/turngate/src/stores/', import.meta.url));
const check = process.argv.includes('--check');
let stale = 0;

function emit(path, text) {
  let current = '';
  try {
    current = readFileSync(path, 'utf8');
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
  }
  if (current === text) return;
  if (check) {
    stale++;
    process.stderr.write(`${path} is stale: run node scripts/generate.mjs\n`);
  } else writeFileSync(path, text);
}

for (const store of ['postgres', 'mysql', 'sqlite']) {
  const folder = `${root}${store}/migrations/`;
  const files = readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .sort();
  const entries = files.map((file, i) => {
    const [, number, name] = /^(\d{4})-([a-z-]+)\.sql$/.exec(file) ?? [];
    if (Number(number) !== i + 1) throw new Error(`${file}: migrations are numbered without gaps`);
    const sql = readFileSync(folder + file, 'utf8').trim();
    if (!sql.startsWith('-- ')) throw new Error(`${file}: starts with a comment that says why`);
    if (/[`\\]|\$\{/.test(sql)) throw new Error(`${file}: no backquote, backslash or template`);
    // One statement each, because not every client sends several at once.
    const statements = sql.split(/;[ \t]*(?:--[^\n]*)?(?:\n|$)/).map((part) => part.trim());
    const quoted = statements.filter(Boolean).map((part) => `    \`${part}\`,\n`);
    return `  { version: ${i + 1}, name: '${name}', statements: [\n${quoted.join('')}  ] },\n`;
  });
  emit(
    `${root}${store}/migrations.generated.ts`,
    `/** Generated from migrations/*.sql by scripts/generate.mjs; do not edit. */
import type { Migration } from '../sql/migration.ts';

/** All migrations in order. Released ones are never edited. */
export const migrations: readonly Migration[] = [
${entries.join('')}];
`,
  );
}
emit(`${root}redis/scripts.generated.ts`, luaModule(`${root}redis/scripts/`));
process.exitCode = stale > 0 ? 1 : 0;
