// Lua scripts → one TypeScript module. A script starts with a header that says what it does, its
// KEYS, ARGV and Reply; "-- include: name" lines are replaced by include-name.lua. The header is
// checked against the code: what it lists is used and what is used is listed.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';

/** The text of scripts.generated.ts for a folder of .lua files. */
export function luaModule(folder) {
  const files = readdirSync(folder).filter((name) => /^(?!include-)[a-z-]+\.lua$/.test(name));
  const entries = files.sort().map((file) => {
    const source = readFileSync(folder + file, 'utf8');
    const code = withIncludes(folder, source);
    checkHeader(file, source, code);
    const lua = stripped(code);
    if (/['\\]/.test(lua.replaceAll("'", ''))) throw new Error(`${file}: no backslash`);
    const sha1 = createHash('sha1').update(lua).digest('hex');
    const name = file.slice(0, -4).replace(/-(.)/g, (_, letter) => letter.toUpperCase());
    return `
/** ${headerOf(source).what} */
export const ${name}Script: Script = {
  name: '${name}',
  sha1: '${sha1}',
  lua: ${JSON.stringify(lua)},
};
`;
  });
  return `/** Generated from scripts/*.lua by scripts/generate.mjs; do not edit. */
import type { Script } from './driver.ts';
${entries.join('')}`;
}

function withIncludes(folder, source) {
  return source.replace(/^-- include: ([a-z-]+)$/gm, (_, name) =>
    readFileSync(`${folder}include-${name}.lua`, 'utf8').trim(),
  );
}

/** Without comments, indentation and empty lines: fewer bytes after a NOSCRIPT. */
function stripped(code) {
  const lines = code.split('\n').map((line) => line.replace(/(^|\s)--.*$/, '').trim());
  return lines.filter(Boolean).join('\n');
}

function headerOf(source) {
  const [, what, keys, argv, reply] =
    /^-- (.+(?:\n-- (?!KEYS).+)*)\n-- KEYS: (.+)\n-- ARGV: (.+)\n-- Reply: (.+)\n/.exec(source) ??
    [];
  return { what: what?.replaceAll('\n-- ', ' '), keys, argv, reply };
}

function checkHeader(file, source, code) {
  const { what, keys, argv, reply } = headerOf(source);
  if (!what || !reply) throw new Error(`${file}: starts with what it does, KEYS, ARGV and Reply`);
  checkList(file, 'KEYS', keys, code);
  checkList(file, 'ARGV', argv, code);
}

/** "a, b" means exactly [1] and [2] are used; "one … each" that the list is walked. */
function checkList(file, what, header, code) {
  const used = [...code.matchAll(new RegExp(`\\b${what}\\[([^\\]]+)\\]`, 'g'))].map(([, i]) => i);
  if (/\beach\b/.test(header)) {
    if (!used.some((index) => /\bi\b/.test(index)))
      throw new Error(`${file}: ${what} is not walked as its header says`);
    return;
  }
  const names = header === 'none' ? [] : header.replace(/\([^)]*\)/g, '').split(',');
  const indexes = new Set(used.map(Number));
  for (let i = 1; i <= names.length; i++) {
    if (!indexes.delete(i))
      throw new Error(`${file}: ${what}[${i}] (${names[i - 1].trim()}) is not used`);
  }
  if (indexes.size > 0) throw new Error(`${file}: ${what}[${[...indexes]}] is not in the header`);
}
