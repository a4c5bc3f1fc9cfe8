// Rules about what users see: doors hold re-exports only, public names are documented, and every
// folder is explained on the architecture page.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { LIBRARY, libraryFolders, SRC } from './house.mjs';

const ARCHITECTURE = 'docs/architecture.md';

/** Doors are the files directly in src/; an exports entry may also lead to a file further inside. */
export function checkDoors(house, report) {
  const files = new Map(house.library.map((file) => [file.path, file]));
  const entries = [...files.keys()].filter((path) => isDoor(path) || isEntry(path, house.manifest));
  for (const path of entries) {
    const file = files.get(path);
    if (isDoor(path)) checkOnlyReexports(file, report);
    for (const { name, line } of exportsOf(file)) {
      const found = findDeclaration(files, path, name);
      if (found === undefined || hasDocComment(found.file, found.statement)) continue;
      const where = found.file.lineAt(found.statement.start);
      const todo = `public name "${name}" (${path}:${line}) needs a /** */ comment right before it`;
      report.violations.push({ path: found.file.path, line: where, rule: 'doc-comment', todo });
    }
  }
}

const isDoor = (path) =>
  /^[^/]+\.ts$/.test(path.slice(SRC.length + 1)) && !path.endsWith('.test.ts');

function isEntry(path, manifest) {
  const emitted = path.replace(`${SRC}/`, './dist/').replace(/\.ts$/, '.js');
  return Object.values(manifest.exports ?? {}).some((target) => target?.default === emitted);
}

function checkOnlyReexports({ path, program, lineAt }, { violations }) {
  for (const statement of program.body) {
    if (statement.type === 'ExportNamedDeclaration' && statement.source !== null) continue;
    const todo = 'a door holds only `export { names } from "…"`: move code and `export *` inside';
    violations.push({ path, line: lineAt(statement.start), rule: 'door', todo });
  }
}

/** [{name, line}] of a file; a name can be followed with findDeclaration. */
function exportsOf({ program, lineAt }) {
  return program.body
    .filter((statement) => statement.type === 'ExportNamedDeclaration')
    .flatMap((statement) => {
      const line = lineAt(statement.start);
      const declared = statement.declaration ? declaredNames(statement.declaration) : [];
      const listed = statement.specifiers.map(({ exported }) => exported.name ?? exported.value);
      return [...declared, ...listed].map((name) => ({ name, line }));
    });
}

/** Names a declaration statement introduces. */
export function declaredNames(declaration) {
  if (declaration.declarations) return declaration.declarations.flatMap(({ id }) => id.name ?? []);
  return declaration.id?.name ? [declaration.id.name] : [];
}

/** Follows re-exports to the statement that declares a name; undefined when it leaves the library. */
function findDeclaration(files, path, name, seen = new Set()) {
  const file = files.get(path);
  if (file === undefined || seen.has(`${path}#${name}`)) return undefined;
  seen.add(`${path}#${name}`);
  const targetOf = (statement) =>
    file.imports.find((used) => used.name === statement.source.value)?.target;
  for (const statement of file.program.body) {
    if (declaredNames(statement.declaration ?? statement).includes(name))
      return { file, statement };
    const specifier = statement.specifiers?.find((one) => exposedName(one) === name);
    if (specifier === undefined) continue;
    const inner = specifier.imported ?? specifier.local;
    const innerName = inner.name ?? inner.value;
    if (statement.source) return findDeclaration(files, targetOf(statement), innerName, seen);
    if (innerName !== name) return findDeclaration(files, path, innerName, seen);
  }
  for (const statement of file.program.body) {
    if (statement.type !== 'ExportAllDeclaration' || statement.exported) continue;
    const found = findDeclaration(files, targetOf(statement), name, seen);
    if (found) return found;
  }
  return undefined;
}

// `export { a as b }` exposes b to others, `import { a as b }` exposes b to this file.
const exposedName = ({ exported, local }) =>
  exported ? (exported.name ?? exported.value) : local.name;

/** True when the last comment before the statement is a doc comment with nothing in between. */
function hasDocComment({ comments, text }, statement) {
  const before = comments.filter(({ end }) => end <= statement.start);
  return before.reverse().some(({ type, value, end }) => {
    const isDoc = type === 'Block' && value.startsWith('*');
    return isDoc && onlyLineComments(text.slice(end, statement.start));
  });
}

// Lint suppressions and `// why` lines may stand between the doc comment and the declaration.
const onlyLineComments = (text) => text.replace(/\/\/[^\n]*/g, '').trim() === '';

/** The page that explains the house must name every room. */
export function checkDocumentedFolders({ root }, { violations, notes }) {
  const page = join(root, ARCHITECTURE);
  if (!existsSync(page)) {
    notes.push(`${ARCHITECTURE} does not exist yet: folders are not compared with it`);
    return;
  }
  const text = expandBraces(readFileSync(page, 'utf8'));
  for (const folder of libraryFolders(root)) {
    const name = folder.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    if (new RegExp(`(^|[^\\w/-])((${LIBRARY}/)?src/)?${name}/`, 'm').test(text)) continue;
    if (new RegExp(`src/${name}(?![\\w-])`).test(text)) continue;
    const todo = `say in a sentence what src/${folder}/ is for`;
    violations.push({ path: ARCHITECTURE, line: 1, rule: 'folder-page', todo });
  }
}

/** `src/stores/{redis,sql}/` → `src/stores/redis/ src/stores/sql/` */
function expandBraces(text) {
  const pattern = /([\w./-]*)\{([\w.,\s-]+)\}([\w./-]*)/g;
  return text.replace(pattern, (_, head, list, tail) =>
    list
      .split(',')
      .map((part) => `${head}${part.trim()}${tail}`)
      .join(' '),
  );
}
