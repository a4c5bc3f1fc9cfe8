// Broken lock stores: the suite must see each of them.

const mutants = {
  /** Every fourth attempt is granted whoever holds the lock. */
  'no exclusion': (store) => {
    let tries = 0;
    let fence;
    return {
      pass: undefined,
      watch: undefined,
      async tryAcquire(attempt) {
        const answer = await store.tryAcquire(attempt);
        if (answer.kind === 'granted') fence = answer.fence;
        if (answer.kind === 'granted' || ++tries % 4 !== 0 || fence === undefined) return answer;
        fence += 1n;
        return { kind: 'granted', fence };
      },
    };
  },
  /** All grants carry one number. */
  'one fence for all': (store) => ({
    pass: undefined,
    watch: undefined,
    async tryAcquire(attempt) {
      const answer = await store.tryAcquire(attempt);
      return answer.kind === 'granted' ? { kind: 'granted', fence: 7n } : answer;
    },
  }),
  /** A lock that is long gone is renewed as if it were ours. */
  'renewal without an owner check': (store) => ({
    async renew(attempts) {
      await store.renew(attempts);
      return attempts.map(() => 'ours');
    },
  }),
};

/** The store, broken in the named way. */
export function breakStore(store, mutant) {
  if (mutant === undefined) return store;
  const broken = mutants[mutant](store);
  return new Proxy(store, {
    get(target, property) {
      if (property in broken) return broken[property];
      const value = target[property];
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
