// A measured process of its own: asked over its channel, gone when this process goes.
import { fork } from 'node:child_process';
import { once } from 'node:events';

/** Forks the file; `ask` calls one of the functions it serves. */
export function startChild(url, { execArgv = [] } = {}) {
  const child = fork(url, [], { execArgv, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const waiting = new Map();
  let serial = 0;
  child.on('message', ({ id, value, error }) => {
    const { resolve, reject } = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) resolve(value);
    else reject(new Error(error));
  });
  child.on('exit', () => {
    for (const { reject } of waiting.values()) reject(new Error('the measured process ended'));
  });
  return {
    ask: (name, input = {}) =>
      new Promise((resolve, reject) => {
        waiting.set(++serial, { resolve, reject });
        child.send({ id: serial, name, input });
      }),
    async end() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.disconnect();
      await ended;
    },
  };
}

/** The other side: functions by name. */
export function serve(functions) {
  process.on('message', ({ id, name, input }) => {
    void (async () => {
      try {
        process.send({ id, value: await functions[name](input) });
      } catch (error) {
        process.send({ id, error: String(error?.stack ?? error) });
      }
    })();
  });
  process.on('disconnect', () => process.exit());
}
