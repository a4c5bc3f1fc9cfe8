// Reads source files into what the rules need: syntax tree, imports, line numbers.
// oxc-parser does the parsing: TypeScript 7 has no JS API, and a regex is not a parser.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { parseSync } from 'oxc-parser';

const SOURCE_NAME = /\.(ts|tsx|mts|mjs|js)$/;
const SKIPPED_FOLDERS = new Set(['node_modules', 'dist', 'coverage']);

/** All files below a folder (posix paths relative to `root`); [] when the folder is not there. */
export function listFiles(root, folder, wanted = SOURCE_NAME) {
  const absolute = join(root, folder);
  if (!existsSync(absolute)) return [];
  return readdirSync(absolute, { withFileTypes: true }).flatMap((entry) => {
    const path = relative(root, join(absolute, entry.name)).split(sep).join('/');
    if (entry.isDirectory())
      return SKIPPED_FOLDERS.has(entry.name) ? [] : listFiles(root, path, wanted);
    return wanted.test(entry.name) ? [path] : [];
  });
}

/** Parses one file. `imports` has every static, dynamic, type-only and re-exporting import. */
export function readSource(root, path) {
  const text = readFileSync(join(root, path), 'utf8');
  const { program, comments, errors } = parseSync(path, text);
  const lineStarts = [0, ...[...text.matchAll(/\n/g)].map((match) => match.index + 1)];
  const source = { path, text, program, comments, isTest: /\.test\.\w+$/.test(path) };
  source.syntaxError = errors[0]?.message;
  source.lineCount = text.endsWith('\n') ? lineStarts.length - 1 : lineStarts.length;
  source.lineAt = (offset) => lineIndex(lineStarts, offset) + 1;
  source.imports = findImports(root, source);
  return source;
}

function lineIndex(lineStarts, offset) {
  let low = 0;
  let high = lineStarts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (lineStarts[middle] <= offset) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Calls `visit(node, parent)` for every node; `visit` may return false to skip the children. */
export function walk(node, visit, parent) {
  if (visit(node, parent) === false) return;
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (typeof child?.type === 'string') walk(child, visit, node);
    }
  }
}

// Every syntax that names another module keeps the name in `source` (or `moduleReference`).
function moduleNameOf(node) {
  if (node.type === 'TSImportEqualsDeclaration') return node.moduleReference.expression?.value;
  if (isRequireCall(node)) return node.arguments[0]?.value;
  return typeof node.source?.value === 'string' ? node.source.value : undefined;
}

const isRequireCall = (node) =>
  node.type === 'CallExpression' &&
  node.callee.type === 'Identifier' &&
  node.callee.name === 'require';

function findImports(root, source) {
  const found = [];
  walk(source.program, (node) => {
    const name = moduleNameOf(node);
    if (typeof name !== 'string') return;
    const target = name.startsWith('.') ? resolveRelative(root, source.path, name) : undefined;
    const dynamic = node.type === 'ImportExpression';
    found.push({ name, target, dynamic, line: source.lineAt(node.start) });
  });
  return found;
}

/** The file a relative import names; `.js` may mean the `.ts` beside it. Undefined when missing. */
function resolveRelative(root, from, name) {
  const path = join(dirname(from), name).split(sep).join('/');
  const candidates = [path, path.replace(/\.(m?)js$/, '.$1ts'), path.replace(/\.js$/, '.tsx')];
  return candidates.find(
    (candidate) => SOURCE_NAME.test(candidate) && existsSync(join(root, candidate)),
  );
}
