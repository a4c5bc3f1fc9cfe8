// Each tidy rule against a small tree that breaks it, and once against one that does not.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { tidy } from '../tidy.mjs';

const SRC = 'packages/turngate/src';
const MANIFEST = JSON.stringify({
  name: 'turngate',
  exports: { '.': { types: './dist/index.d.ts', default: './dist/index.js' } },
  peerDependencies: { '@nestjs/common': '>=10' },
});

/** Runs tidy over a temporary tree; keys not starting with a known top folder are below src. */
function tidyTree(files) {
  const root = mkdtempSync(join(tmpdir(), 'turngate-tidy-'));
  try {
    const all = { 'packages/turngate/package.json': MANIFEST, ...files };
    for (const [name, text] of Object.entries(all)) {
      const path = join(
        root,
        /^(packages|apps|bench|examples|docs)\//.test(name) ? name : `${SRC}/${name}`,
      );
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text);
    }
    return tidy(root);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** `path:line rule` of each violation, so that a test names exactly what it expects. */
const found = (files) =>
  tidyTree(files)
    .violations.map(({ path, line, rule }) => `${path.replace(`${SRC}/`, '')}:${line} ${rule}`)
    .sort();

const A = 'export const a = 1;\n';

test('a clean tree passes', () => {
  const files = {
    'index.ts': "export { a } from './core/a.ts';\nexport type { B } from './lock/b.ts';\n",
    'core/a.ts': `import { createHash } from 'node:crypto';\n/** A. */\n${A}void createHash;\n`,
    'lock/b.ts': "import { a } from '../core/a.ts';\n/** B. */\nexport type B = typeof a;\n",
    'apps/shop/src/main.ts': "import { a } from 'turngate';\nvoid a;\n",
    'apps/shop/src/lab/run.ts': "import './wrong/w.ts';\n",
    'apps/shop/src/lab/wrong/w.ts': A,
    'docs/architecture.md': 'src/{core,lock}/ are folders\n',
  };
  assert.deepEqual(found(files), []);
});

const WRONG_ARROWS = [
  ['core/x.ts', '../contract/a.ts', 'contract/a.ts'],
  ['contract/x.ts', '../runtime/a.ts', 'runtime/a.ts'],
  ['runtime/x.ts', '../contract/a.ts', 'contract/a.ts'],
  ['stores/redis/x.ts', '../postgres/a.ts', 'stores/postgres/a.ts'],
  ['stores/redis/x.ts', '../sql/a.ts', 'stores/sql/a.ts'],
  ['stores/memory/x.ts', '../../lock/a.ts', 'lock/a.ts'],
  ['lock/x.ts', '../stores/memory/a.ts', 'stores/memory/a.ts'],
  ['idempotency/x.ts', '../flow/a.ts', 'flow/a.ts'],
  ['gate/x.ts', '../saga/a.ts', 'saga/a.ts'],
  ['http/x.ts', '../lock/a.ts', 'lock/a.ts'],
  ['integrations/koa/x.ts', '../hono/a.ts', 'integrations/hono/a.ts'],
  ['integrations/koa/x.ts', '../../stores/redis/a.ts', 'stores/redis/a.ts'],
  ['telemetry/x.ts', '../lock/a.ts', 'lock/a.ts'],
  ['gate/x.ts', '../conformance/a.ts', 'conformance/a.ts'],
  ['cli/x.ts', '../gate/a.ts', 'gate/a.ts'],
  ['gate/x.ts', '../index.ts', 'index.ts'],
];

for (const [from, name, target] of WRONG_ARROWS) {
  test(`arrow: ${from} may not import ${target}`, () => {
    for (const statement of [
      `import { a } from '${name}';`,
      `import type { a } from '${name}';`,
      `export { a } from '${name}';`,
      `export const later = () => import('${name}');`,
      `type T = import('${name}').T;`,
    ]) {
      const text = target === 'index.ts' ? "export { b } from './core/b.ts';\n" : A;
      assert.deepEqual(found({ [from]: `${statement}\n`, [target]: text }), [`${from}:1 arrow`]);
    }
  });
}

test('arrow: the allowed ones are allowed', () => {
  const files = {
    'stores/postgres/x.ts': "import '../sql/a.ts';\nimport '../../contract/a.ts';\n",
    'stores/sql/a.ts': A,
    'contract/a.ts': A,
    'gate/x.ts': "import '../lock/x.ts';\nimport './y.ts';\n",
    'gate/y.ts': A,
    'lock/x.ts': A,
    'lock/x.test.ts': "import '../stores/postgres/x.ts';\nsetTimeout(() => {}, 1);\n",
    'cli/x.ts': "import '../stores/postgres/x.ts';\nvoid import('pg');\nconsole.log(1);\n",
    'integrations/nestjs/x.ts': "import '@nestjs/common';\nimport '../../gate/x.ts';\n",
    'conformance/x.ts': "import 'node:assert/strict';\nimport '../lock/x.ts';\n",
  };
  assert.deepEqual(found(files), []);
});

test('arrow: packages, platform modules in core, unknown folders, ways out', () => {
  assert.deepEqual(found({ 'lock/x.ts': "import pg from 'pg';\n" }), ['lock/x.ts:1 arrow']);
  assert.deepEqual(found({ 'cli/x.ts': "import pg from 'pg';\n" }), ['cli/x.ts:1 arrow']);
  assert.deepEqual(found({ 'core/x.ts': "import 'node:fs';\n" }), ['core/x.ts:1 arrow']);
  assert.deepEqual(found({ 'utils/x.ts': A }), ['utils/x.ts:1 arrow']);
  assert.deepEqual(found({ 'stores/x.ts': A }), ['stores/x.ts:1 arrow']);
  const outside = { 'lock/x.ts': "import '../../../../bench/a.mjs';\n", 'bench/a.mjs': A };
  assert.deepEqual(found(outside), ['lock/x.ts:1 arrow']);
});

test('entry: users import declared entries, never a path into the package', () => {
  const undeclared = { 'examples/x.mjs': "import 'turngate';\nimport 'turngate/secret';\n" };
  assert.deepEqual(found(undeclared), ['examples/x.mjs:2 entry']);
  const path = "\nimport '../packages/turngate/src/core/a.ts';\n";
  assert.deepEqual(found({ 'bench/x.mjs': path, 'core/a.ts': A }), ['bench/x.mjs:2 entry']);
});

test('lab-wrong: only the lab imports the wrong versions', () => {
  const files = {
    'apps/shop/src/orders/x.ts': "import '../lab/wrong/w.ts';\n",
    'apps/shop/src/lab/wrong/w.ts': A,
  };
  assert.deepEqual(found(files), ['apps/shop/src/orders/x.ts:1 lab-wrong']);
});

test('cycle: in the library and in an app, through types too', () => {
  const files = {
    'lock/a.ts': "import './b.ts';\n",
    'lock/b.ts': "import './c.ts';\n",
    'lock/c.ts': "\nimport type { A } from './a.ts';\n",
    'apps/shop/src/a.ts': "import './b.js';\n",
    'apps/shop/src/b.ts': "import './a.js';\n",
  };
  assert.deepEqual(found(files), ['apps/shop/src/b.ts:1 cycle', 'lock/c.ts:2 cycle']);
});

test('file-length: over 400 fails, over 250 warns', () => {
  const lines = (count) => 'void 0;\n'.repeat(count);
  const files = { 'lock/a.ts': lines(400), 'lock/b.ts': lines(401), 'lock/c.ts': lines(250) };
  assert.deepEqual(found(files), ['lock/b.ts:1 file-length']);
  assert.deepEqual(
    tidyTree(files).warnings.map(({ path }) => path),
    [`${SRC}/lock/a.ts`],
  );
});

test('function-length: over 70 lines fails, in apps too, not in tests', () => {
  const body = (count) => 'void 0;\n'.repeat(count - 2);
  const files = {
    'lock/a.ts': `export function f() {\n${body(70)}}\n`,
    'lock/b.ts': `\nexport const f = () => {\n${body(71)}};\n`,
    'lock/b.test.ts': `const f = () => {\n${body(71)}};\n`,
    'apps/shop/src/c.ts': `class C {\n  m() {\n${body(71)}}\n}\n`,
  };
  assert.deepEqual(found(files), [
    'apps/shop/src/c.ts:2 function-length',
    'lock/b.ts:2 function-length',
  ]);
});

const IMPURE = [
  'Date.now()',
  'new Date()',
  'Date()',
  'performance.now()',
  'setTimeout(f, 1)',
  'globalThis.setInterval(f, 1)',
  'setImmediate(f)',
  'queueMicrotask(f)',
  'process.hrtime.bigint()',
  'Math.random()',
  "Math['random']()",
  'crypto.randomUUID()',
  'randomBytes(8)',
  'globalThis.crypto.getRandomValues(bytes)',
  'AbortSignal.timeout(5)',
  'schedule({ setTimeout })',
];

for (const expression of IMPURE) {
  test(`impure: ${expression} only in runtime/ and tests`, () => {
    const text = `\nexport const x = () => ${expression};\n`;
    const files = { 'lock/x.ts': text, 'runtime/x.ts': text, 'lock/x.test.ts': text };
    assert.deepEqual([...new Set(found(files))], ['lock/x.ts:2 impure']);
  });
}

test('impure: modules count, mere names and types do not', () => {
  assert.deepEqual(found({ 'lock/x.ts': "import 'node:timers/promises';\n" }), [
    'lock/x.ts:1 impure',
  ]);
  const text = `
    type Timer = ReturnType<typeof setTimeout>;
    interface Clock { setTimeout(f: () => void): Timer; randomUUID: string }
    export const at = (clock: Clock, ms: number) => [clock.setTimeout(() => {}), new Date(ms)];
    export const fake = { setTimeout: () => 1, 'Date.now': 2 };
  `;
  assert.deepEqual(found({ 'lock/x.ts': text }), []);
});

test('style: no default export, no console outside cli', () => {
  assert.deepEqual(found({ 'lock/x.ts': 'export default 1;\n' }), ['lock/x.ts:1 default-export']);
  const renamed = 'const a = 1;\nexport { a as default };\n';
  assert.deepEqual(found({ 'lock/x.ts': renamed }), ['lock/x.ts:2 default-export']);
  assert.deepEqual(found({ 'lock/x.ts': "console.log('x');\n" }), ['lock/x.ts:1 console']);
});

test('door: re-exports only', () => {
  const files = {
    'index.ts':
      "export * from './core/a.ts';\nimport './core/a.ts';\n/** B. */\nexport const b = 1;\n",
    'core/a.ts': `/** A. */\n${A}`,
  };
  assert.deepEqual(found(files), ['index.ts:1 door', 'index.ts:2 door', 'index.ts:4 door']);
});

test('doc-comment: every public name, followed through re-exports and renames', () => {
  const files = {
    'index.ts': "export { a, renamed, type T, plain } from './core/inner.ts';\n",
    'core/inner.ts': "export { a, b as renamed } from './deep.ts';\nexport * from './types.ts';\n",
    'core/deep.ts': `/** A. */\n${A}/* not doc */\nexport const b = 1;\nexport const unlisted = 1;\n`,
    'core/types.ts':
      '/** T. */\n// why\nexport interface T {}\n\nfunction plain() {}\nexport { plain };\n',
  };
  assert.deepEqual(found(files), ['core/deep.ts:4 doc-comment', 'core/types.ts:5 doc-comment']);
});

test('folder-page: every folder is named on the architecture page', () => {
  const files = { 'core/a.ts': A, 'stores/redis/a.ts': A, 'stores/sql/a.ts': A };
  assert.equal(tidyTree(files).notes.length, 1);
  const page = {
    'docs/architecture.md': '`src/core/` and `src/stores/{redis,sqlite}/`, a lock/\n',
  };
  assert.deepEqual(found({ ...files, ...page }), ['docs/architecture.md:1 folder-page']);
});
