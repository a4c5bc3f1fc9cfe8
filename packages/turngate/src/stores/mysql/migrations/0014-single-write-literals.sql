-- The same procedure, which now reads the texts of the statement and the values in it in one collation:
-- values are literals, so that the columns they meet decide and their indexes are used.
DROP PROCEDURE IF EXISTS turngate_single_write;
CREATE PROCEDURE turngate_single_write(
  IN p_id BINARY(32), IN p_operation VARBINARY(255), IN p_scope VARBINARY(255),
  IN p_key VARBINARY(255), IN p_fingerprint VARBINARY(255), IN p_owner VARBINARY(255),
  IN p_retention_ms BIGINT, IN p_result LONGBLOB, IN p_statement LONGTEXT CHARACTER SET utf8mb4)
MODIFIES SQL DATA
BEGIN
  DECLARE v_known INT DEFAULT 0; DECLARE v_rows INT DEFAULT 1; DECLARE v_now BIGINT; DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN
    ROLLBACK; RESIGNAL; END; SET character_set_client = utf8mb4, character_set_connection = utf8mb4; START TRANSACTION; SET v_now = (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000); BEGIN
    DECLARE CONTINUE HANDLER FOR 1062 SET v_known = 1; INSERT INTO turngate_record (id, operation, scope, record_key, state, fingerprint, owner,
      result, first_processed_ms, expires_ms)
    VALUES (p_id, p_operation, p_scope, p_key, 'done', p_fingerprint, p_owner, p_result,
      v_now, v_now + p_retention_ms); END; IF v_known = 0 THEN
    SET @turngate_write = p_statement; PREPARE turngate_write FROM @turngate_write; EXECUTE turngate_write; SET v_rows = ROW_COUNT(); DEALLOCATE PREPARE turngate_write; END IF; IF v_known = 0 AND v_rows = 1 THEN COMMIT; ELSE ROLLBACK; END IF; SELECT IF(v_rows = 1, 'kept', 'nothing') AS outcome, v_now AS now_ms, r.state, r.fingerprint,
      r.owner, r.result, r.first_processed_ms, r.expires_ms
    FROM (SELECT 1 AS one) AS o LEFT JOIN turngate_record AS r ON r.id = p_id; END
