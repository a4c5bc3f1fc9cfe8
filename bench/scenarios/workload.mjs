// The business work every variant does: one row of 10,000 gets one more, and the new balance is the
// result. Plus the keys under which it is asked for.
import { randomUUID } from 'node:crypto';

const ACCOUNTS = 10_000;
export const IN_FLIGHT = 16;

export const UPDATE = {
  name: 'bench_update',
  text: 'UPDATE accounts SET balance = balance + 1 WHERE id = $1 RETURNING balance',
};

/** Tables of the business and of the hand-written rows. */
export const SCHEMA = `
  CREATE TABLE accounts (id int PRIMARY KEY, balance bigint NOT NULL DEFAULT 0)
    WITH (fillfactor = 50);
  INSERT INTO accounts SELECT id FROM generate_series(1, ${ACCOUNTS}) id;
  CREATE TABLE idem (
    op smallint NOT NULL,
    key uuid NOT NULL,
    state smallint NOT NULL DEFAULT 1,
    fingerprint bytea,
    result jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (op, key))`;

const anyAccount = () => 1 + Math.floor(Math.random() * ACCOUNTS);

/** A request nobody has seen before. */
export function freshRequest() {
  return { key: randomUUID(), account: anyAccount() };
}

/**
 * Requests of which `share` repeat one of the last 100. A repeat may be of finished work or of work
 * still in flight, as in the field.
 */
export class RepeatingRequests {
  recent = [];
  fresh = 0;

  constructor(share) {
    this.share = share;
  }

  next() {
    if (this.recent.length >= 20 && Math.random() < this.share) {
      return this.recent[Math.floor(Math.random() * this.recent.length)];
    }
    const request = freshRequest();
    this.recent[this.fresh++ % 100] = request;
    return request;
  }
}
