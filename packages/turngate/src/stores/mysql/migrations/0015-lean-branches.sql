-- Clean-up reads branches by the time in their names: an index by their last change only cost time.
SET @turngate_alter = IF((SELECT COUNT(*) FROM information_schema.statistics
    WHERE table_schema = DATABASE() AND table_name = 'turngate_branch' AND index_name = 'turngate_branch_age') = 0,
  'DO 0',
  'ALTER TABLE turngate_branch DROP INDEX turngate_branch_age');
PREPARE turngate_alter FROM @turngate_alter;
EXECUTE turngate_alter;
DEALLOCATE PREPARE turngate_alter;
