// A lock store that writes down every call and every answer at its door, pushed grants included.

/** The same store; `note` gets {side: 'store', verb, phase, name, owner, …}. */
export function recorded(store, note) {
  const say = (verb, phase, attempt, more = {}) =>
    note({ side: 'store', verb, phase, name: attempt.name, owner: attempt.owner, ...more });
  const grant = (attempt, answer) =>
    answer.kind === 'granted'
      ? say('try', 'ok', attempt, { answer: 'granted', fence: String(answer.fence) })
      : say('try', 'ok', attempt, { answer: 'held' });
  const fail = (verb, attempt, error) => {
    say(verb, 'fail', attempt, { code: error?.code ?? String(error), outcome: error?.outcome });
    throw error;
  };
  const tryCall = (attempt) => say('try', 'call', attempt, { leaseMs: attempt.leaseMs });
  const verbs = {
    async tryAcquire(attempt) {
      tryCall(attempt);
      const answer = await store.tryAcquire(attempt).catch((error) => fail('try', attempt, error));
      grant(attempt, answer);
      return answer;
    },
    async renew(attempts) {
      for (const each of attempts) say('renew', 'call', each, { leaseMs: each.leaseMs });
      const answers = await store.renew(attempts).catch((error) => {
        for (const each of attempts.slice(1)) say('renew', 'fail', each);
        return fail('renew', attempts[0], error);
      });
      for (const [i, each] of attempts.entries()) say('renew', 'ok', each, { answer: answers[i] });
      return answers;
    },
    async release(attempt) {
      say('release', 'call', attempt);
      const answer = await store.release(attempt).catch((error) => fail('release', attempt, error));
      say('release', 'ok', attempt, { answer });
      return answer;
    },
    async pass(attempt, next) {
      say('release', 'call', attempt);
      tryCall(next);
      const both = await store.pass(attempt, next).catch((error) => {
        say('try', 'fail', next);
        return fail('release', attempt, error);
      });
      say('release', 'ok', attempt, { answer: both.answer });
      grant(next, both.grant);
      return both;
    },
    watch(attempt, onPush) {
      return store.watch(attempt, (granted) => {
        if (granted !== undefined) grant(attempt, granted);
        onPush(granted);
      });
    },
  };
  return new Proxy(store, {
    get(target, property) {
      const value = target[property];
      if (typeof value !== 'function') return value;
      return verbs[property] ?? value.bind(target);
    },
  });
}
