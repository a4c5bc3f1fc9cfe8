import { expect, it } from 'vitest';
import { joinedReads } from './joined-reads.ts';

it('gives nobody what was read before they asked, in two reads for all', async () => {
  const reads: ((value: number) => void)[] = [];
  const read = joinedReads<number>(() => new Promise((resolve) => reads.push(resolve)));
  const early = read('tea');
  const late = Array.from({ length: 100 }, () => read('tea'));
  const other = read('cup');
  reads[0]?.(1);
  reads[1]?.(7);
  expect([await early, await other]).toEqual([1, 7]);
  await expect.poll(() => reads.length).toBe(3);
  reads[2]?.(2);
  expect(new Set(await Promise.all(late))).toEqual(new Set([2]));
  void read('tea');
  expect(reads).toHaveLength(4); // Nothing is kept.
});

it('reads again for those who came during a read that failed', async () => {
  let reads = 0;
  const read = joinedReads(async () => {
    reads++;
    if (reads === 1) throw new Error('away');
    return reads;
  });
  const [first, second] = await Promise.allSettled([read('tea'), read('tea')]);
  expect([first.status, second]).toEqual(['rejected', { status: 'fulfilled', value: 2 }]);
});
