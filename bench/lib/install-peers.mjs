// The peers live in a folder that is no workspace: only whoever runs the lock suite has them.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';

const folder = new URL('../peers/', import.meta.url);
const mark = new URL('node_modules/.turngate-lock', folder);

/** Installs exactly what the lock file says, unless that is there already. */
export async function installPeers(say, signal) {
  const wanted = await lockDigest();
  const found = await readFile(mark, 'utf8').catch(() => '');
  if (found === wanted) return;
  say('installing the peers, about 15 s');
  // Some peers ask for a newer Node than 20 and run on it all the same.
  await npm(['ci', '--legacy-peer-deps', '--ignore-scripts', '--no-audit', '--no-fund'], signal);
  await writeFile(mark, wanted);
}

async function lockDigest() {
  const lock = await readFile(new URL('package-lock.json', folder));
  return createHash('sha256').update(lock).digest('hex');
}

function npm(args, signal) {
  return new Promise((resolve, reject) => {
    const child = spawn('npm', args, { cwd: folder, signal, stdio: ['ignore', 'ignore', 'pipe'] });
    const told = [];
    child.stderr.on('data', (chunk) => told.push(chunk));
    child.on('error', reject);
    child.on('close', (code) => {
      if (code === 0) resolve();
      else reject(new Error(`npm ci of the peers failed:\n${Buffer.concat(told)}`));
    });
  });
}
