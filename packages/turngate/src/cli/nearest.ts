/** Suggestions for words that were nearly right. */

/** `; did you mean …?` for the nearest known word, or nothing when none is near. */
export function didYouMean(given: string, known: readonly string[]): string {
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.floor(given.length / 2)) + 1;
  for (const word of known) {
    const distance = editDistance(given, word);
    if (distance >= bestDistance) continue;
    bestDistance = distance;
    best = word;
  }
  return best === undefined ? '' : `; did you mean ${best}?`;
}

/** Levenshtein: how many characters to insert, delete or replace. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, i) => i);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const replace = (row[j - 1] as number) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(replace, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[to.length] as number;
}
