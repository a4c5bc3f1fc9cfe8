// async-mutex: no server, one process. The bound for what a queue in the process can do.
import { Mutex } from 'async-mutex';

export const mutex = {
  async open() {
    const mutexes = new Map();
    return {
      close: async () => {},
      acquire(key) {
        let own = mutexes.get(key);
        if (own === undefined) {
          own = new Mutex();
          mutexes.set(key, own);
        }
        return own.acquire();
      },
    };
  },
};
