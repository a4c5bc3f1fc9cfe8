// A day of a million keys on three sides, in a process of its own: time and memory.
import { startChild } from '../lib/child.mjs';

export const reconciliation = {
  id: 'reconcile',
  title: 'Reconciliation',
  goals: [
    {
      table: 'reconcile',
      row: 'turngate-reconcile',
      key: 'seconds',
      atMost: 15,
      what: 'reconciling 1 M × 3: seconds',
    },
    {
      table: 'reconcile',
      row: 'turngate-reconcile',
      key: 'rssMib',
      atMost: 256,
      what: 'reconciling 1 M × 3: MiB',
    },
    {
      table: 'reconcile',
      row: 'turngate-reconcile',
      key: 'breaks',
      atMost: 0,
      what: 'reconciling clean data: breaks',
    },
  ],
  async run({ postgres, options, say }) {
    const keys = options.quick ? 100_000 : 1_000_000;
    say(`reconciling ${keys.toLocaleString('en-US')} keys on three sides`);
    const worker = startChild(new URL('./reconcile-worker.mjs', import.meta.url));
    try {
      const values = await worker.ask('reconcile', { url: postgres.url, keys });
      const label = '**Turngate**, clean data';
      const rows = [{ id: 'turngate-reconcile', label, ours: true, values }];
      const title = `Reconciling ${keys.toLocaleString('en-US')} keys × 3 sides, PostgreSQL`;
      return [{ id: 'reconcile', title, columns: COLUMNS, rows }];
    } finally {
      await worker.end();
    }
  },
};

const COLUMNS = [
  { key: 'seconds', label: 'seconds', digits: 1 },
  { key: 'rssMib', label: 'largest RSS, MiB', digits: 0 },
  { key: 'breaks', label: 'breaks', digits: 0 },
];
