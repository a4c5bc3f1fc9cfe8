// What all peers are told alike. "Patient" callers ask again every 10 ms, give or take 5.
export const POLL_MS = 10;
export const POLL_JITTER_MS = 5;

/** When a polling loop asks next. */
export const pollDelayMs = () => POLL_MS + (Math.random() * 2 - 1) * POLL_JITTER_MS;

/** How many tries make `patientMs`; undefined leaves a peer's own default. */
export const triesFor = (patientMs) =>
  patientMs === undefined ? undefined : Math.ceil(patientMs / POLL_MS);

/** Calls `make` for all keys, 500 at a time; returns what they gave. */
export async function inSlices(keys, make) {
  const made = [];
  for (let i = 0; i < keys.length; i += 500) {
    made.push(...(await Promise.all(keys.slice(i, i + 500).map(make))));
  }
  return made;
}

/** Something to wait for, and how to end the wait. */
export function gateUntil() {
  let open;
  const opened = new Promise((resolve) => {
    open = resolve;
  });
  return { open, opened };
}
