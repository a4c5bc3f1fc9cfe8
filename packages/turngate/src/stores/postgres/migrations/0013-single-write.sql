-- Claim, one declared write and its result in one call: one trip, one commit. The claim comes first,
-- so that a repeat never touches the business row.
CREATE FUNCTION turngate_single_write(
  p_operation text, p_scope text, p_key text, p_fingerprint text, p_owner text,
  p_retention_ms bigint, p_statement text, p_values text[]
) RETURNS TABLE (r_state text, r_fingerprint text, r_owner text, r_result text,
  r_first text, r_expires text, r_live text)
LANGUAGE plpgsql AS $body$
DECLARE
  v_rows text; v_now timestamptz; BEGIN
  v_now := clock_timestamp(); INSERT INTO turngate_record AS r
    (operation, scope, key, state, fingerprint, owner, result, first_processed_at, expires_at)
  VALUES (p_operation, p_scope, p_key, 'done', p_fingerprint, p_owner, '',
    v_now, v_now + p_retention_ms * interval '1 millisecond')
  ON CONFLICT ON CONSTRAINT turngate_record_pkey DO NOTHING; IF FOUND THEN
    EXECUTE 'WITH w AS (' || p_statement || ') SELECT json_agg(w)::text FROM w'
      INTO v_rows USING p_values; IF v_rows IS NULL THEN
      RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'no row was written'; END IF; UPDATE turngate_record
      SET result = '1' || v_rows
      WHERE operation = p_operation AND scope = p_scope AND key = p_key; END IF; RETURN QUERY
    SELECT t.state, t.fingerprint, t.owner, t.result,
      trunc(extract(epoch FROM t.first_processed_at) * 1000)::text,
      trunc(extract(epoch FROM t.expires_at) * 1000)::text,
      (t.expires_at > clock_timestamp())::text
    FROM turngate_record t
    WHERE t.operation = p_operation AND t.scope = p_scope AND t.key = p_key; END
$body$;
