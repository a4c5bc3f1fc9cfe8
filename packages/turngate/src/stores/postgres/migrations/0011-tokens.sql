-- Submit tokens, by a digest of token, operation and subject; vouchers, one row per side action done.
CREATE TABLE turngate_submit_token (
  digest     text COLLATE "C" PRIMARY KEY,
  expires_ms bigint NOT NULL,
  spent_ms   bigint
);
CREATE INDEX turngate_submit_token_age ON turngate_submit_token USING brin (expires_ms);
CREATE TABLE turngate_voucher (
  name        text COLLATE "C" NOT NULL,
  voucher_key text COLLATE "C" NOT NULL,
  token       text COLLATE "C" NOT NULL,
  created_ms  bigint NOT NULL,
  PRIMARY KEY (name, voucher_key)
);
CREATE INDEX turngate_voucher_age ON turngate_voucher USING brin (created_ms);
