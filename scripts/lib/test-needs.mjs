// What tests need beyond `npm start`: servers from the distribution, and the packages of compat/.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { aptInstall } from './apt.mjs';
import { installIn } from './install.mjs';
import { root } from './paths.mjs';
import { withProcessLock } from './process-lock.mjs';
import { interruptible, runStep, say } from './steps.mjs';

/** Program → the Debian packages that bring it. */
const SERVERS = {
  'redis-server': ['redis-server'],
  mariadbd: ['mariadb-server'],
  'zookeeper.jar': ['zookeeper', 'libzookeeper-java'],
  java: ['default-jre-headless'],
  etcd: ['etcd-server', 'etcd-client'],
  'rabbitmq-server': ['rabbitmq-server'],
  'nats-server': ['nats-server'],
  spin: ['spin'],
  chromium: ['chromium'],
};

/** What compiles better-sqlite3, which has no ready binary for every Node. */
const COMPILER = {
  make: ['build-essential'],
  'g++': ['build-essential'],
  python3: ['python3'],
};

const compat = join(root, 'compat');

/**
 * Installs what is missing. What cannot be installed is told loudly and nothing more: the tests
 * that need it skip, or fail where servers are required. Call it after `bootstrap`.
 */
export async function installTestNeeds() {
  await interruptible((signal) =>
    withProcessLock(join(root, '.turngate', 'bootstrap-lock'), signal, async (onPid) => {
      const wanted = needsCompiling() ? { ...SERVERS, ...COMPILER } : SERVERS;
      const missing = await packagesOfMissing(wanted);
      if (missing.length > 0) await aptInstall(missing, { signal, onPid });
      await installCompat({ signal, onPid });
    }),
  );
}

async function packagesOfMissing(wanted) {
  const entry = join(root, 'packages', 'test-servers', 'dist', 'index.js');
  const { lookForProgram } = await import(pathToFileURL(entry).href);
  const missing = Object.entries(wanted).filter(([name]) => lookForProgram(name) === undefined);
  return [...new Set(missing.flatMap(([, packages]) => packages))];
}

async function installCompat({ signal, onPid }) {
  if (!existsSync(join(compat, 'package-lock.json'))) return;
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund'];
  const label = 'npm ci in compat/ (the first time takes a minute)';
  const finish = async () => {
    if (!needsCompiling()) return;
    const rebuild = ['rebuild', 'better-sqlite3'];
    const what = 'compile better-sqlite3 (the first time takes a minute or two)';
    await runStep(what, 'npm', rebuild, { cwd: compat, signal, onPid });
  };
  try {
    await installIn(compat, label, args, { signal, onPid, finish });
  } catch (error) {
    signal.throwIfAborted();
    say(`compat/ IS INCOMPLETE, some of its tests will fail: ${error.message}`);
  }
}

/** Loading it is the only honest test: a binary of another Node looks the same. */
function needsCompiling() {
  const script = "new (require('better-sqlite3'))(':memory:').close()";
  return spawnSync(process.execPath, ['-e', script], { cwd: compat, stdio: 'ignore' }).status !== 0;
}
