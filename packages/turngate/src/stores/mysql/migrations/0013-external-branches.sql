-- Branches whose effect is outside the database: states while a call is out, lease and fence of the
-- attempt, and when a second cancel is due because a lost try may have landed after the first. One
-- statement, looked up first, so that it can be repeated. On MariaDB the old check goes with MODIFY.
SET @turngate_alter = IF((SELECT COUNT(*) FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'turngate_branch' AND column_name = 'recancel_ms') > 0,
  'DO 0',
  'ALTER TABLE turngate_branch
    /*!80016 DROP CHECK turngate_branch_chk_1, */
    MODIFY state VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    ADD CONSTRAINT turngate_branch_state CHECK (state IN (''TRYING'', ''TRIED'', ''CONFIRMING'', ''CONFIRMED'', ''CANCELLING'', ''CANCELLED'', ''SUSPENDED'')),
    ADD COLUMN mode VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT ''local'',
    ADD COLUMN fence BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN lease_until_ms BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN recancel_ms BIGINT,
    ADD INDEX turngate_branch_recancel (recancel_ms)');
PREPARE turngate_alter FROM @turngate_alter;
EXECUTE turngate_alter;
DEALLOCATE PREPARE turngate_alter;
