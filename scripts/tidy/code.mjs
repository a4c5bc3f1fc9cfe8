// Rules about the code inside a file: length, hidden time and chance, default exports, console.
import { SRC } from './house.mjs';
import { walk } from './source.mjs';

const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression']);

export function checkLengths({ library, others, limits }, { violations, warnings }) {
  for (const file of [...library, ...others]) {
    const { path, lineCount, program, lineAt, isTest, syntaxError } = file;
    if (syntaxError) violations.push({ path, line: 1, rule: 'syntax', todo: syntaxError });
    if (lineCount > limits.fileLines) {
      const todo = `${lineCount} lines, allowed are ${limits.fileLines}: split it by what changes together`;
      violations.push({ path, line: 1, rule: 'file-length', todo });
    } else if (lineCount > limits.fileLinesWarning) {
      warnings.push({ path, line: 1, todo: `${lineCount} lines: think of splitting it` });
    }
    if (isTest) continue; // A describe() callback is a chapter, not a function.
    walk(program, (node) => {
      if (!FUNCTIONS.has(node.type)) return;
      const line = lineAt(node.start);
      const length = lineAt(node.end) - line + 1;
      if (length <= limits.functionLines) return;
      const todo = `function of ${length} lines, allowed are ${limits.functionLines}: name its parts`;
      violations.push({ path, line, rule: 'function-length', todo });
    });
  }
}

const IMPURE_NAMES = new Set(
  `setTimeout setInterval setImmediate queueMicrotask randomUUID randomBytes randomInt
   getRandomValues hrtime`.split(/\s+/),
);
const IMPURE_MEMBERS = new Set([
  'Date.now',
  'performance.now',
  'Math.random',
  'AbortSignal.timeout',
]);
const IMPURE_MODULES = new Set(['node:timers', 'node:timers/promises', 'node:perf_hooks']);
// Members count for these names whatever the object is: `crypto.randomUUID`, `process.hrtime`.
const IMPURE_ON_ANY_OBJECT = /^(random(UUID|Bytes|Int)|getRandomValues|hrtime)$/;
const GLOBAL_OBJECTS = new Set(['globalThis', 'global', 'window']);
// `typeof setTimeout` in a type reads no clock.
const TYPES_ONLY = new Set([
  'TSTypeAnnotation',
  'TSTypeAliasDeclaration',
  'TSInterfaceDeclaration',
  'TSTypeParameterInstantiation',
]);

/** Clock, timers and chance come from runtime/, so that tests can replace them all. */
export function checkImpurity({ library }, { violations }) {
  for (const { path, program, imports, lineAt, isTest } of library) {
    if (isTest || path.startsWith(`${SRC}/runtime/`)) continue;
    const report = (line, what) => {
      const todo = `${what} outside runtime/: take the clock, timers or random source from runtime`;
      violations.push({ path, line, rule: 'impure', todo });
    };
    for (const { name, line } of imports) if (IMPURE_MODULES.has(name)) report(line, name);
    walk(program, (node, parent) => {
      if (TYPES_ONLY.has(node.type)) return false;
      const what = impureUse(node, parent);
      if (what) report(lineAt(node.start), what);
      return undefined;
    });
  }
}

function impureUse(node, parent) {
  if (node.type === 'NewExpression' || node.type === 'CallExpression') {
    const isDate = node.callee.type === 'Identifier' && node.callee.name === 'Date';
    // `new Date(ms)` only converts; `Date(...)` as a call always reads the clock.
    if (isDate && (node.arguments.length === 0 || node.type === 'CallExpression'))
      return 'new Date()';
  }
  if (node.type === 'MemberExpression') return impureMember(node);
  if (node.type === 'Identifier' && IMPURE_NAMES.has(node.name) && isReference(node, parent)) {
    return node.name;
  }
  return undefined;
}

function impureMember({ object, property, computed }) {
  const name = computed ? property.value : property.name;
  if (typeof name !== 'string') return undefined;
  // `globalThis.Date.now` is the same clock as `Date.now`.
  const owner = object.type === 'MemberExpression' ? object.property.name : object.name;
  if (IMPURE_MEMBERS.has(`${owner}.${name}`)) return `${owner}.${name}`;
  if (IMPURE_ON_ANY_OBJECT.test(name)) return `${owner ?? '…'}.${name}`;
  if (GLOBAL_OBJECTS.has(owner) && IMPURE_NAMES.has(name)) return `${owner}.${name}`;
  return undefined;
}

/** False for a mere name: `clock.setTimeout`, `{ setTimeout: … }`, a method called setTimeout. */
function isReference(node, parent) {
  if (parent === undefined || parent.computed) return true;
  if (parent.type === 'MemberExpression') return parent.object === node;
  if (parent.type === 'ImportSpecifier') return parent.local === node;
  return !('key' in parent && parent.key === node && !parent.shorthand);
}

/** Biome says the same while editing; here it cannot be switched off by a comment. */
export function checkStyle({ library }, { violations }) {
  for (const { path, program, lineAt, isTest } of library) {
    walk(program, (node) => {
      const line = lineAt(node.start);
      if (isDefaultExport(node)) {
        const todo = 'default export: give it a name, so that it is called the same everywhere';
        violations.push({ path, line, rule: 'default-export', todo });
      }
      if (isConsole(node) && !isTest && !path.startsWith(`${SRC}/cli/`)) {
        const todo = 'console in the library: publish a diagnostics event, the application decides';
        violations.push({ path, line, rule: 'console', todo });
      }
    });
  }
}

const isConsole = (node) =>
  node.type === 'MemberExpression' &&
  node.object.type === 'Identifier' &&
  node.object.name === 'console';

const isDefaultExport = (node) =>
  node.type === 'ExportDefaultDeclaration' ||
  node.type === 'TSExportAssignment' ||
  (node.type === 'ExportSpecifier' && (node.exported.name ?? node.exported.value) === 'default');
