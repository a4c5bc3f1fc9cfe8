/** Starts the simulated channel as a process of its own beside the shop. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { ShopConfig } from '../config.ts';

/** A running channel. */
export interface ChannelProcess {
  readonly url: string;
  stop(): Promise<void>;
}

const startMs = 10_000;

/** Resolves when it answers. It ends with the shop, also when the shop is killed. */
export async function startChannel(
  config: ShopConfig,
  shopPort: number,
  say: (line: string) => void,
): Promise<ChannelProcess> {
  const child = fork(fileURLToPath(new URL('./main.js', import.meta.url)), {
    // A group of its own: Ctrl-C reaches the shop, which stops it in order.
    detached: true,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: {
      ...process.env,
      CHANNEL_DATA_DIR: config.dataDir,
      CHANNEL_SECRET: config.channelSecret,
      CHANNEL_NOTIFY_URL: `http://127.0.0.1:${shopPort}/api/callbacks/payment`,
    },
  });
  const ended = once(child, 'exit');
  const signal = AbortSignal.timeout(startMs);
  const url = await Promise.race([
    once(child, 'message', { signal }).then(([message]) => (message as { url: string }).url),
    ended.then(([code]) => {
      throw new Error(`the payment channel ended with ${code}`);
    }),
  ]);
  child.on('exit', (code) => {
    if (code !== 0 && !child.killed) say(`the payment channel ended with ${code}`);
  });
  return {
    url,
    async stop() {
      if (child.exitCode !== null) return;
      child.kill('SIGTERM');
      await ended;
    },
  };
}
