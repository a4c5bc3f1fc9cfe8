// Counts what a pg.Pool sends, below the library that is measured: trips are queries handed to a
// client, each waiting for one answer; statements are what the server is asked to execute.

/** Counts from now on, on every connection the pool opens from now on. */
export function countWire(pool) {
  const count = { trips: 0, statements: 0 };
  const counted = (target, name, counter) => {
    const original = target[name].bind(target);
    target[name] = (...args) => {
      count[counter]++;
      return original(...args);
    };
  };
  pool.on('connect', (client) => {
    counted(client, 'query', 'trips');
    counted(client.connection, 'query', 'statements'); // Simple protocol.
    counted(client.connection, 'execute', 'statements'); // Prepared.
  });
  return {
    async during(work) {
      const before = { ...count };
      const result = await work();
      const { trips, statements } = count;
      return { result, trips: trips - before.trips, statements: statements - before.statements };
    },
  };
}
