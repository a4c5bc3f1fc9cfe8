// The process that reconciles. The lines are made as they are asked for, as from a cursor.
import { postgresDatabase } from 'turngate/postgres';
import { reconcile } from 'turngate/reconcile';
import { serve } from '../lib/child.mjs';
import { openPg } from '../lib/sql-suite.mjs';

const FROM_MS = Date.UTC(2026, 10, 28);
const DAY_MS = 86_400_000;
const BATCH = 1_000;

function lineOf(side, i) {
  const key = `P${String(i).padStart(8, '0')}`;
  const line = {
    kind: 'PAY',
    key,
    ref: key,
    amountMinor: 1_250n + BigInt(i % 1_000),
    currency: 'CNY',
    status: side === 'order' ? 'PAID' : 'SUCCESS',
    atMs: FROM_MS + DAY_MS / 2,
  };
  return side === 'order' ? line : { ...line, alt: `T${key}` };
}

async function* linesOf(side, keys) {
  for (let from = 0; from < keys; from += BATCH) {
    const length = Math.min(BATCH, keys - from);
    yield Array.from({ length }, (_, i) => lineOf(side, from + i));
  }
}

serve({
  async reconcile({ url, keys }) {
    const pool = openPg(url, 4);
    const startMs = performance.now();
    const { report } = await reconcile({
      database: postgresDatabase(pool),
      channel: 'bench',
      date: '2026-11-28',
      fromMs: FROM_MS,
      toMs: FROM_MS + DAY_MS,
      open: (side) => linesOf(side, keys),
    });
    const seconds = (performance.now() - startMs) / 1_000;
    await pool.end();
    const rssMib = process.resourceUsage().maxRSS / 1_024;
    return { seconds, rssMib, breaks: report.breaks.length };
  },
});
