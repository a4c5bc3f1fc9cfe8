/** Child processes that speak in lines. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** A running child with the lines it has printed. */
export interface Child {
  readonly process: ChildProcess;
  readonly lines: readonly string[];
  /** Resolves when the child has printed this line; rejects when it ends before. */
  said(line: string): Promise<void>;
  /** Resolves with the exit code or the signal. */
  readonly ended: Promise<number | string>;
}

/** Starts a script of this folder. */
export function startChild(script: string, args: readonly string[]): Child {
  const path = fileURLToPath(new URL(script, import.meta.url));
  const child = spawn(process.execPath, [path, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines: string[] = [];
  const listeners = new Set<() => void>();
  let rest = '';
  child.stdout.on('data', (data: Buffer) => {
    const parts = (rest + data.toString()).split('\n');
    rest = parts.pop() as string;
    lines.push(...parts);
    for (const listener of listeners) listener();
  });
  const ended = once(child, 'close').then(([code, signal]) => code ?? signal);
  return {
    process: child,
    lines,
    ended,
    said: (line) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          if (!lines.includes(line)) return;
          listeners.delete(look);
          resolve();
        };
        listeners.add(look);
        look();
        void ended.then((how) => reject(new Error(`child ended (${how}) before "${line}"`)));
      }),
  };
}
