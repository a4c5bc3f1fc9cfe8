import { join } from 'node:path';
import { buildAll } from './build-all.mjs';
import { installDependencies } from './install.mjs';
import { root } from './paths.mjs';
import { withProcessLock } from './process-lock.mjs';
import { interruptible, say } from './steps.mjs';

const NODE_MIN = [20, 19];

/**
 * Makes a fresh or changed checkout ready to run: installs and compiles what is missing or stale.
 *
 * Fast when there is nothing to do, and safe when several start at once. Exits the process when a
 * step fails (1) or is interrupted (130, 143), with the reason on standard error.
 */
export async function bootstrap() {
  assertNode();
  await interruptible((signal) =>
    withProcessLock(join(root, '.turngate', 'bootstrap-lock'), signal, async (onPid) => {
      await installDependencies({ signal, onPid });
      await buildAll({ signal, onPid });
    }),
  );
}

function assertNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > NODE_MIN[0] || (major === NODE_MIN[0] && minor >= NODE_MIN[1])) return;
  say(`needs Node ${NODE_MIN.join('.')} or newer, and this is ${process.version}`);
  process.exit(1);
}
