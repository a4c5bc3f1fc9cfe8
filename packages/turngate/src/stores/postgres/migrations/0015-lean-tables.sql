-- What each first call and each branch paid for and nothing used: the clean-up reads records in the
-- order of their blocks and branches by the time in their names; states and names are checked before
-- they are sent. Room in the pages lets a row change in place.
DROP INDEX IF EXISTS turngate_record_expiry;
ALTER TABLE turngate_record
  DROP CONSTRAINT IF EXISTS turngate_record_operation_check,
  DROP CONSTRAINT IF EXISTS turngate_record_scope_check,
  DROP CONSTRAINT IF EXISTS turngate_record_key_check,
  DROP CONSTRAINT IF EXISTS turngate_record_state_check;
DROP INDEX turngate_branch_age;
ALTER TABLE turngate_branch
  DROP CONSTRAINT turngate_branch_state_check,
  DROP CONSTRAINT turngate_branch_mode_check,
  SET (fillfactor = 60);
