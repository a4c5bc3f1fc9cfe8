// What larger parts cost next to the bare transaction: barrier, hot stock, reconciliation.
import { startSqlServers } from '../lib/sql-suite.mjs';
import { barrier } from '../transactions/barrier.mjs';
import { reconciliation } from '../transactions/reconcile.mjs';
import { hotStock } from '../transactions/stock.mjs';

export const transactions = {
  id: 'transactions',
  open: startSqlServers,
  scenarios: [barrier, hotStock, reconciliation],
};
