-- Submit tokens, by a digest of token, operation and subject; vouchers, one row per side action done.
CREATE TABLE turngate_submit_token (
  digest     TEXT NOT NULL PRIMARY KEY,
  expires_ms INTEGER NOT NULL,
  spent_ms   INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX turngate_submit_token_age ON turngate_submit_token (expires_ms);
CREATE TABLE turngate_voucher (
  name        TEXT NOT NULL,
  voucher_key TEXT NOT NULL,
  token       TEXT NOT NULL,
  created_ms  INTEGER NOT NULL,
  PRIMARY KEY (name, voucher_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX turngate_voucher_age ON turngate_voucher (created_ms);
