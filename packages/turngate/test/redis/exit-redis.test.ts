import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { describeWith, serverUrl } from '../support/servers.ts';

const script = fileURLToPath(new URL('exit-child.mjs', import.meta.url));

describeWith('redis', 'end of a process that used locks', () => {
  for (const kind of ['ioredis', 'node-redis']) {
    for (const how of ['once', 'contended']) {
      it(`it ends when its client ends, without waiting for any timer: ${kind}, ${how}`, async () => {
        const args = [script, serverUrl('redis'), kind, how];
        const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
        let said = '';
        child.stdout.on('data', (text) => {
          said += text;
        });
        const [code] = await once(child, 'close');
        expect([said, code]).toEqual(['0 timers\n', 0]);
      });
    }
  }
});
