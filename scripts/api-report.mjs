// The public API as text, one file per exports entry, so that a change of it shows in review.
// `--write` updates packages/turngate/etc/api; without it the command fails when a file is stale.
//
// A report holds the declarations of the exported names, taken from dist/*.d.ts, without comments,
// sorted by name. Types that users can see through them but cannot import follow in a second part:
// a change there is an API change too.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync } from 'oxc-parser';
import { declaredNames } from './tidy/public.mjs';
import { walk } from './tidy/source.mjs';

const library = fileURLToPath(new URL('../packages/turngate', import.meta.url));
const reports = join(library, 'etc', 'api');

const parsed = new Map();

/** One .d.ts file: its text without comments (offsets kept), its statements. */
function readTypes(path) {
  if (!parsed.has(path)) {
    const text = readFileSync(path, 'utf8');
    const { program, comments } = parseSync(path, text);
    const blank = ({ start, end }) => text.slice(start, end).replace(/[^\n]/g, ' ');
    let bare = '';
    let from = 0;
    for (const comment of comments) {
      bare += text.slice(from, comment.start) + blank(comment);
      from = comment.end;
    }
    parsed.set(path, { path, text: bare + text.slice(from), body: program.body });
  }
  return parsed.get(path);
}

const nameOf = (node) => node.name ?? node.value;
const declarationOf = (statement) => statement.declaration ?? statement;

/** `./x.js` → the path of its .d.ts; undefined for a package. */
function typesPath(from, name) {
  if (!name.startsWith('.')) return undefined;
  return join(dirname(from), name).replace(/(\.d)?\.[jt]s$/, '.d.ts');
}

/** All names a file exports; `export *` included. */
function exportedNames(path) {
  return readTypes(path).body.flatMap((statement) => {
    if (statement.type === 'ExportAllDeclaration') {
      if (statement.exported) return [nameOf(statement.exported)];
      const target = typesPath(path, statement.source.value);
      return target ? exportedNames(target) : [];
    }
    if (statement.type !== 'ExportNamedDeclaration') return [];
    const declared = statement.declaration ? declaredNames(statement.declaration) : [];
    return [...declared, ...statement.specifiers.map(({ exported }) => nameOf(exported))];
  });
}

/**
 * Where a name seen in a file is declared: {path, name, statements}, several statements for
 * overloads or merged declarations. Undefined for globals, type parameters and foreign packages.
 */
function locate(path, name) {
  const { body } = readTypes(path);
  const statements = body.filter((one) => declaredNames(declarationOf(one)).includes(name));
  if (statements.length > 0) return { path, name, statements };
  for (const statement of body) {
    const target = statement.source ? typesPath(path, statement.source.value) : path;
    for (const { local, exported, imported } of statement.specifiers ?? []) {
      if (nameOf(exported ?? local) !== name) continue;
      const inner = nameOf(exported ? local : (imported ?? local));
      if (target && !(target === path && inner === name)) return locate(target, inner);
    }
  }
  return locateInStars(path, name);
}

function locateInStars(path, name) {
  for (const { type, exported, source } of readTypes(path).body) {
    if (type !== 'ExportAllDeclaration' || exported) continue;
    const target = typesPath(path, source.value);
    const found = target && locate(target, name);
    if (found) return found;
  }
  return undefined;
}

function render({ path, statements }) {
  const { text } = readTypes(path);
  return statements
    .map(({ start, end }) => text.slice(start, end).replace(/^export (declare )?|^declare /, ''))
    .join('\n')
    .split('\n')
    .map((line) => line.trimEnd())
    .filter((line) => line !== '')
    .join('\n');
}

// Where an identifier names a type or value of its module, not a member or a parameter.
const MENTIONS = new Set([
  'TSTypeReference',
  'TSTypeQuery',
  'TSQualifiedName',
  'TSInterfaceHeritage',
  'TSClassImplements',
]);

/** Names of types a declaration mentions. */
function mentionedNames({ statements }) {
  const names = new Set();
  for (const statement of statements) {
    walk(statement, (node, parent) => {
      if (node.type !== 'Identifier') return;
      if (MENTIONS.has(parent?.type) || parent?.superClass === node) names.add(node.name);
    });
  }
  return names;
}

/** Declarations reachable from the given ones that no entry exports. */
function hiddenTypes(start, publicKeys) {
  const found = new Map();
  const open = [...start];
  for (const declaration of open) {
    for (const name of mentionedNames(declaration)) {
      const other = locate(declaration.path, name);
      if (other === undefined) continue;
      const key = keyOf(other);
      if (publicKeys.has(key) || found.has(key)) continue;
      found.set(key, other);
      open.push(other);
    }
  }
  return [...found.values()];
}

const keyOf = ({ path, name }) => `${path}#${name}`;
const byName = (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.path < b.path ? -1 : 1);

/** Map of report file name → text. */
function makeReports() {
  const { exports } = JSON.parse(readFileSync(join(library, 'package.json'), 'utf8'));
  const entries = Object.entries(exports)
    .filter(([, target]) => target.types)
    .map(([entry, target]) => ({ entry, found: publicDeclarations(join(library, target.types)) }));
  const publicKeys = new Set(entries.flatMap(({ found }) => found.map(keyOf)));
  return new Map(
    entries.map(({ entry, found }) => {
      const name = entry === '.' ? 'index' : entry.slice(2).replaceAll('/', '-');
      const hidden = hiddenTypes(found, publicKeys).sort(byName);
      return [`${name}.d.ts.txt`, reportText(entry, found, hidden)];
    }),
  );
}

/** Exported declarations; `as` keeps the public name where it differs from the declared one. */
function publicDeclarations(path) {
  return [...new Set(exportedNames(path))]
    .map((as) => ({ as, ...(locate(path, as) ?? { path, name: as, statements: [] }) }))
    .sort((a, b) => (a.as < b.as ? -1 : 1));
}

function reportText(entry, found, hidden) {
  const specifier = `turngate${entry.slice(1)}`;
  const parts = found.map((one) => {
    if (one.statements.length === 0) return `// ${one.as}: from another package`;
    return one.as === one.name ? render(one) : `// exported as ${one.as}\n${render(one)}`;
  });
  const lines = [
    `// Public API of "${specifier}". Written by scripts/api-report.mjs --write.`,
    ...parts,
  ];
  if (hidden.length > 0) lines.push('// Visible through the above, not importable by name:');
  return `${[...lines, ...hidden.map(render)].join('\n\n')}\n`;
}

function write(wanted) {
  rmSync(reports, { recursive: true, force: true });
  mkdirSync(reports, { recursive: true });
  for (const [name, text] of wanted) writeFileSync(join(reports, name), text);
  console.log(`api: wrote ${wanted.size} reports`);
}

function compare(wanted) {
  const present = existsSync(reports) ? readdirSync(reports) : [];
  const names = [...new Set([...wanted.keys(), ...present])].sort();
  const stale = names.filter((name) => {
    const path = join(reports, name);
    const text = wanted.get(name);
    if (text === undefined) console.log(`${name}: no exports entry of this name any more`);
    else if (!existsSync(path)) console.log(`${name}: missing`);
    else if (readFileSync(path, 'utf8') !== text) showDifference(path, text);
    else return false;
    return true;
  });
  if (stale.length > 0) console.log('If the change is meant: node scripts/api-report.mjs --write');
  else console.log(`api: ${names.length} reports are current`);
  process.exitCode = stale.length === 0 ? 0 : 1;
}

function showDifference(path, text) {
  const args = ['diff', '--no-index', '--no-color', '--', path, '-'];
  console.log(spawnSync('git', args, { input: text, encoding: 'utf8' }).stdout);
}

const wanted = makeReports();
if (process.argv.includes('--write')) write(wanted);
else compare(wanted);
