-- Submit tokens, by a digest of token, operation and subject; vouchers, one row per side action done.
CREATE TABLE IF NOT EXISTS turngate_submit_token (
  digest VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY,
  expires_ms BIGINT NOT NULL,
  spent_ms BIGINT,
  KEY turngate_submit_token_age (expires_ms)
) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS turngate_voucher (
  name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  voucher_key VARBINARY(255) NOT NULL,
  token VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  created_ms BIGINT NOT NULL,
  PRIMARY KEY (name, voucher_key),
  KEY turngate_voucher_age (created_ms)
) ENGINE = InnoDB;
