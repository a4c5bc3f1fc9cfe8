// What the figures were taken on. No names and no paths: they say nothing about the figures.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { arch, cpus, loadavg, platform } from 'node:os';

/** The machine, Node and Turngate. */
export function machine() {
  const [processor] = cpus();
  return {
    cores: cpus().length,
    processor: processor?.model.trim(),
    system: `${platform()} ${arch()}`,
    loadAverageBefore: Number(loadavg()[0].toFixed(2)),
    node: process.versions.node,
    turngate: versionOf('turngate'),
  };
}

/** Machine and versions; `serverVersion` is what PostgreSQL says about itself. */
export function environmentOf(serverVersion) {
  return {
    ...machine(),
    postgresql: serverVersion,
    pg: versionOf('pg'),
    postgresJs: versionOf('postgres'),
  };
}

function versionOf(name) {
  const require = createRequire(import.meta.url);
  const folders = require.resolve.paths(name) ?? [];
  for (const folder of folders) {
    try {
      return JSON.parse(readFileSync(`${folder}/${name}/package.json`, 'utf8')).version;
    } catch {} // Not in this folder: the next one up.
  }
  return undefined;
}
