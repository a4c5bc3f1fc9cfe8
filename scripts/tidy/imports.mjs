// Rules about who may import whom.
import { LIBRARY, SRC } from './house.mjs';

/**
 * The arrow-table row a library file belongs to: `stores/redis` or `core`. A door (src/x.ts) has
 * none: it may re-export anything. `row` is undefined for a folder that is not in the table.
 */
function placeOf(path, arrows) {
  const [first, second, ...rest] = path.slice(SRC.length + 1).split('/');
  if (second === undefined) return { folder: '', row: undefined, isDoor: true };
  const nested = `${first}/${second}`;
  const hasRows = Object.keys(arrows).some((row) => row.startsWith(`${first}/`));
  if (!hasRows) return { folder: first, row: arrows[first] };
  if (rest.length === 0) return { folder: first, row: arrows[first] };
  return { folder: nested, row: arrows[nested] ?? arrows[`${first}/*`] };
}

const allows = (row, folder) => row.includes(folder) || row.includes(`${folder.split('/')[0]}/*`);

/** Inside the library: only the arrows of the table, only declared packages. */
export function checkArrows(house, { violations }) {
  const { arrows } = house;
  for (const file of house.library) {
    if (file.isTest) continue;
    const { folder, row, isDoor } = placeOf(file.path, arrows);
    if (isDoor) continue;
    if (row === undefined) {
      const todo = `folder "${folder}" has no row in ARROWS: add one in scripts/tidy.mjs, or move the file`;
      violations.push({ path: file.path, line: 1, rule: 'arrow', todo });
      continue;
    }
    for (const used of file.imports) {
      const todo = used.name.startsWith('.')
        ? wrongArrow(used, folder, row, arrows)
        : wrongPackage(used, folder, house);
      if (todo) violations.push({ path: file.path, line: used.line, rule: 'arrow', todo });
    }
  }
}

function wrongArrow({ name, target }, folder, row, arrows) {
  if (target === undefined) return undefined; // The compiler reports a missing file.
  if (!target.startsWith(`${SRC}/`))
    return `${name} leaves ${SRC}: the published package ends there`;
  const other = placeOf(target, arrows);
  if (other.isDoor) return `${name} is a door: import from the folder that declares the name`;
  if (other.folder === folder || allows(row, other.folder)) return undefined;
  const allowed = row.length > 0 ? row.join(', ') : 'nothing';
  return `${folder} may import ${allowed}; not ${other.folder}. Move the code down or pass it in`;
}

function wrongPackage({ name, dynamic }, folder, { manifest, nodeModules }) {
  if (name.startsWith('node:')) {
    const allowed = nodeModules[folder];
    if (!allowed || allowed.includes(name)) return undefined;
    return `${folder} may not import ${name}: keep I/O, clocks and platform calls in runtime`;
  }
  const packageName = packageOf(name);
  if (packageName in (manifest.peerDependencies ?? {})) return undefined;
  // The command resolves drivers from the user's project, so it may ask for one at run time.
  if (folder === 'cli' && dynamic) return undefined;
  return `the library has no dependencies: take "${packageName}" as a parameter, typed by the slice used`;
}

const packageOf = (name) =>
  name
    .split('/')
    .slice(0, name.startsWith('@') ? 2 : 1)
    .join('/');

/** Outside the library: declared entries only; and only the lab may run the wrong versions. */
export function checkConsumers(house, { violations }) {
  const entries = Object.keys(house.manifest.exports ?? {}).map((key) => `turngate${key.slice(1)}`);
  for (const { path, imports } of house.consumers) {
    for (const { name, target, line } of imports) {
      const isOurs = name === 'turngate' || name.startsWith('turngate/');
      if (isOurs && !entries.includes(name)) {
        const todo = `${name} is not in exports of ${LIBRARY}/package.json; use one of: ${entries.join(', ')}`;
        violations.push({ path, line, rule: 'entry', todo });
      }
      if (name.includes(LIBRARY) || target?.startsWith(`${LIBRARY}/`)) {
        const todo = `import "turngate" or "turngate/<entry>", never a path into ${LIBRARY}`;
        violations.push({ path, line, rule: 'entry', todo });
      }
      if (target && isInWrong(target) && !isInLab(path)) {
        const todo = 'lab/wrong holds deliberately broken code: only the lab runner may import it';
        violations.push({ path, line, rule: 'lab-wrong', todo });
      }
    }
  }
}

const isInWrong = (path) => path.startsWith('apps/shop/src/lab/wrong/');
const isInLab = (path) => path.startsWith('apps/shop/src/lab/');

/** No file may reach itself through imports; type-only imports count, they couple just the same. */
export function checkCycles(house, { violations }) {
  const files = new Map([...house.library, ...house.others].map((file) => [file.path, file]));
  const state = new Map(); // path → 'open' while on the stack, then 'done'
  const stack = [];
  const visit = (path) => {
    state.set(path, 'open');
    stack.push(path);
    for (const { target, line } of files.get(path).imports) {
      if (!files.has(target)) continue;
      if (!state.has(target)) visit(target);
      else if (state.get(target) === 'open') {
        const round = [...stack.slice(stack.indexOf(target)), target].join(' → ');
        const todo = `import cycle ${round}: move what both need into a third file`;
        violations.push({ path, line, rule: 'cycle', todo });
      }
    }
    stack.pop();
    state.set(path, 'done');
  };
  for (const path of files.keys()) if (!state.has(path)) visit(path);
}
