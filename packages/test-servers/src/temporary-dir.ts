import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A directory that is removed by `remove`, or when this process ends in any way. */
export interface TemporaryDir {
  readonly path: string;
  remove(): Promise<void>;
}

/**
 * Makes the directory, so that there is no moment in which nobody watches it, and removes it when
 * told by a line. When the input closes without one, Node has died: programs that are being killed
 * may write a little longer, or make the directory anew, so it is removed again for 5 seconds.
 * Nobody may be there to read "made", which must not end the janitor.
 */
const JANITOR = `
trap '' PIPE
mkdir -m 700 "$1" || exit 1
echo made
exec >/dev/null
if read -r _; then rounds=1; else rounds=50; fi
while rm -rf "$1"; [ "$rounds" -gt 1 ]; do sleep 0.1; rounds=$((rounds - 1)); done
`;

/** Makes an empty directory that only this user may enter. */
export async function temporaryDir(name: string): Promise<TemporaryDir> {
  // Short: the path of a UNIX socket below it may have 107 characters at most.
  const path = join(tmpdir(), `tg-${name}-${randomBytes(4).toString('hex')}`);
  const janitor = spawn('sh', ['-c', JANITOR, 'sh', path], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  janitor.stdin.on('error', () => {});
  const ended = new Promise<void>((resolve) => janitor.once('close', () => resolve()));
  await new Promise<void>((resolve, reject) => {
    janitor.once('error', reject);
    janitor.stdout.once('data', () => resolve());
    void ended.then(() => reject(new Error(`cannot make the directory ${path}`)));
  });
  return {
    path,
    async remove() {
      if (janitor.stdin.writable) janitor.stdin.end('remove\n');
      await ended;
    },
  };
}
