/** The simulated channel as a process, for tests that kill it. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { channelSecret } from './shop.ts';

const mainPath = fileURLToPath(new URL('../../dist/channel/main.js', import.meta.url));

export interface TestChannel {
  readonly url: string;
  readonly child: ChildProcess;
  kill(): Promise<void>;
}

/** It remembers in `dataDir` over restarts. */
export async function forkChannel(base: string, dataDir: string, port = 0): Promise<TestChannel> {
  const child = fork(mainPath, {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    env: {
      ...process.env,
      CHANNEL_DATA_DIR: dataDir,
      CHANNEL_SECRET: channelSecret,
      CHANNEL_NOTIFY_URL: `${base}/api/callbacks/payment`,
      CHANNEL_PORT: String(port),
    },
  });
  const [message] = await once(child, 'message');
  return {
    url: (message as { url: string }).url,
    child,
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** Waits for a condition, never for a time. */
export async function until(holds: () => Promise<boolean>, limitMs = 60_000): Promise<void> {
  for (const endMs = Date.now() + limitMs; ; ) {
    if (await holds().catch(() => false)) return;
    if (Date.now() > endMs) throw new Error(`gave up waiting until ${holds}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
