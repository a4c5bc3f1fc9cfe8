/** The depot as a process of its own, for tests that kill it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { channelSecret } from './shop.ts';

const mainPath = fileURLToPath(new URL('../../dist/depot/main.js', import.meta.url));

export interface DepotProcess {
  readonly url: string;
  kill(): Promise<void>;
}

/** Resolves when it answers. */
export async function spawnDepot(databaseUrl: string, port = 0): Promise<DepotProcess> {
  const child = spawn(process.execPath, [mainPath], {
    env: {
      ...process.env,
      LOG_LEVEL: 'warn',
      DATABASE_URL: databaseUrl,
      STOCK_SERVICE_SECRET: channelSecret,
      PORT: String(port),
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let text = '';
  const ended = once(child, 'exit');
  const url = await new Promise<string>((resolve, reject) => {
    child.stderr.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      const found = /ready at (http:\/\/\S+)/.exec(text);
      if (found !== null) resolve(found[1] as string);
    });
    void ended.then(([code]) => reject(new Error(`the depot ended with ${code}: ${text}`)));
  });
  return {
    url,
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await ended;
    },
  };
}
