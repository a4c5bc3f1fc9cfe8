// Keeps the documents true: links lead somewhere, the translation has the same shape, quoted code
// is the code that runs, and quoted imports exist. Usage: node scripts/docs-check.mjs [root]
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { listFiles } from './tidy/source.mjs';

const root = process.argv[2] ?? process.cwd();
const README = 'README.md';
const TRANSLATION = 'README.zh-CN.md';
const problems = [];
const report = (path, line, todo) => problems.push(`${path}:${line} ${todo}`);

/** Splits a page into headings, fences and prose lines (prose has no code in it). */
function readPage(path) {
  const page = { path, headings: [], fences: [], prose: [], anchors: new Set() };
  let fence;
  let before = '';
  for (const [index, text] of readFileSync(join(root, path), 'utf8').split('\n').entries()) {
    const line = index + 1;
    const mark = /^\s*(`{3,}|~{3,})(.*)$/.exec(text);
    if (fence) {
      if (mark?.[1].startsWith(fence.mark) && mark[2].trim() === '') fence = undefined;
      else fence.lines.push(text);
    } else if (mark) {
      fence = { mark: mark[1], language: mark[2].trim().split(/\s/)[0], line, before, lines: [] };
      page.fences.push(fence);
      before = '';
    } else {
      addProse(page, text, line);
      if (text.trim() !== '') before = text.trim();
    }
  }
  return page;
}

function addProse(page, text, line) {
  const heading = /^#{1,6}\s+(.*?)\s*#*$/.exec(text);
  if (heading) {
    page.headings.push({ text: heading[1], line });
    page.anchors.add(uniqueSlug(page.anchors, slugOf(heading[1])));
  }
  for (const [, id] of text.matchAll(/<a\s+(?:id|name)="([^"]+)"/g)) page.anchors.add(id);
  page.prose.push({ text: text.replace(/`[^`]*`/g, ''), line });
}

/** The anchor GitHub makes: markup off, lower case, only letters, digits, `-`, `_`. */
function slugOf(heading) {
  const plain = heading.replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/<[^>]+>/g, '');
  return plain
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, '')
    .trim()
    .replaceAll(' ', '-');
}

function uniqueSlug(taken, slug) {
  let unique = slug;
  for (let count = 1; taken.has(unique); count += 1) unique = `${slug}-${count}`;
  return unique;
}

function checkLinks(page) {
  const inline = /!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)/g;
  const definition = /^\s*\[[^\]]+\]:\s*<?(\S+?)>?(?:\s|$)/g;
  const html = /<(?:a|img)\s[^>]*(?:href|src)="([^"]+)"/g;
  for (const { text, line } of page.prose) {
    for (const pattern of [inline, definition, html]) {
      for (const [, link] of text.matchAll(pattern)) checkLink(page, link, line);
    }
  }
}

function checkLink(page, link, line) {
  if (/^([a-z][a-z0-9+.-]*:|\/\/)/i.test(link)) return; // Another site: not ours to promise.
  const [file, anchor] = decodeURI(link).split('#');
  const target = file === '' ? page.path : relative(root, join(root, dirname(page.path), file));
  if (!existsSync(join(root, target))) {
    report(page.path, line, `link to ${link}: there is no ${target}`);
    return;
  }
  if (!anchor || !target.endsWith('.md') || statSync(join(root, target)).isDirectory()) return;
  const other = target === page.path ? page : readPage(target);
  if (!other.anchors.has(anchor))
    report(page.path, line, `link to ${link}: ${target} has no #${anchor}`);
}

function checkTranslation(pages) {
  const [original, translation] = [README, TRANSLATION].map((path) =>
    pages.find((page) => page.path === path),
  );
  if (!original || !translation) return;
  for (const part of ['headings', 'fences']) {
    const [wanted, actual] = [original[part].length, translation[part].length];
    if (wanted === actual) continue;
    report(TRANSLATION, 1, `${actual} ${part}, ${README} has ${wanted}: bring them in step`);
  }
}

/** A fence after `<!-- from: path -->` is that file, or its `#region readme` when it has one. */
function checkQuotes({ path, fences }) {
  for (const { before, language, line, lines } of fences) {
    const origin = /^<!--\s*from:\s*(\S+?)(?:#(\S+))?\s*-->$/.exec(before);
    if (origin === null || !['ts', 'js'].includes(language)) continue;
    const [, file, region] = origin;
    if (!existsSync(join(root, file))) report(path, line, `quotes ${file}, which does not exist`);
    else if (quotable(file, region) !== lines.join('\n').trim()) {
      report(path, line, `differs from ${file}: copy the code again, or correct the file`);
    }
  }
}

function quotable(file, region = 'readme') {
  const lines = readFileSync(join(root, file), 'utf8').split('\n');
  const start = lines.findIndex((line) => line.trim() === `// #region ${region}`);
  if (start < 0) return lines.join('\n').trim();
  const length = lines
    .slice(start + 1)
    .findIndex((line) => line.trim().startsWith('// #endregion'));
  const inside = lines.slice(start + 1, length < 0 ? undefined : start + 1 + length);
  const indents = inside.filter((line) => line.trim() !== '').map((line) => line.search(/\S/));
  return inside
    .map((line) => line.slice(Math.min(...indents)))
    .join('\n')
    .trim();
}

/** Code in a page may import only entries that the package declares. */
function checkEntries({ path, fences }, entries) {
  for (const { line, lines } of fences) {
    for (const [, name] of lines
      .join('\n')
      .matchAll(/(?:from|import\(|require\()\s*['"](turngate[^'"]*)/g)) {
      if (/^turngate(\/|$)/.test(name) && !entries.has(name)) {
        report(path, line, `shows import of ${name}, which package.json does not export`);
      }
    }
  }
}

function declaredEntries() {
  const path = join(root, 'packages', 'turngate', 'package.json');
  const { exports = {} } = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : {};
  return new Set(Object.keys(exports).map((entry) => `turngate${entry.slice(1)}`));
}

for (const path of [README, TRANSLATION]) {
  if (!existsSync(join(root, path))) console.log(`note: ${path} does not exist yet: not checked`);
}
const rootPages = readdirSync(root).filter((name) => name.endsWith('.md'));
const folders = ['docs', 'packages', 'apps', 'examples', 'bench'];
const paths = [...rootPages, ...folders.flatMap((folder) => listFiles(root, folder, /\.md$/))];
const pages = paths.map(readPage);
const entries = declaredEntries();
for (const page of pages) {
  checkLinks(page);
  checkQuotes(page);
  checkEntries(page, entries);
}
checkTranslation(pages);
for (const problem of problems) console.log(problem);
console.log(`docs: ${pages.length} pages, ${problems.length} problems`);
process.exitCode = problems.length === 0 ? 0 : 1;
