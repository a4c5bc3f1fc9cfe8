// Starts servers and then waits to be killed. Prints one JSON line: pid and port of each.
// Usage: node owner-child.mjs Redis Mariadb …; a name with `!` is paused.
import {
  startEtcd,
  startMariadb,
  startRabbitmq,
  startRedis,
  startZookeeper,
} from '../dist/index.js';

const STARTS = {
  Etcd: startEtcd,
  Mariadb: startMariadb,
  Rabbitmq: startRabbitmq,
  Redis: startRedis,
  Zookeeper: startZookeeper,
};

const started = await Promise.all(
  process.argv.slice(2).map(async (word) => {
    const kind = word.replace('!', '');
    const server = await STARTS[kind]();
    if (word !== kind) await server.pause();
    return server;
  }),
);
console.log(JSON.stringify(started.map(({ pid, port }) => ({ pid, port }))));
