-- Clean-up reads branches by the time in their names: an index by their last change only cost time.
DROP INDEX turngate_branch_age;
