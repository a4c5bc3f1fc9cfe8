/** Repeatable chance: the same seed gives every cell the same waits, whichever cells run. */
export interface Chance {
  /** An integer from `min` to `max`, both included. */
  between(min: number, max: number): number;
}

export function createChance(seed: number, label: string): Chance {
  let state = fnv1a(`${seed}:${label}`);
  // mulberry32: one word of state, even enough for jitter.
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return { between: (min, max) => min + Math.floor(next() * (max - min + 1)) };
}

function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (const character of text) {
    hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193);
  }
  return hash;
}
