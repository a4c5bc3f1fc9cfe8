-- Branches whose effect is outside the database: states while a call is out, lease and fence of the
-- attempt, and when a second cancel is due because a lost try may have landed after the first.
ALTER TABLE turngate_branch
  DROP CONSTRAINT turngate_branch_state_check,
  ADD CONSTRAINT turngate_branch_state_check CHECK (state IN ('TRYING', 'TRIED', 'CONFIRMING', 'CONFIRMED', 'CANCELLING', 'CANCELLED', 'SUSPENDED')),
  ADD COLUMN mode text COLLATE "C" NOT NULL DEFAULT 'local' CHECK (mode IN ('local', 'external')),
  ADD COLUMN fence bigint NOT NULL DEFAULT 0,
  ADD COLUMN lease_until_ms bigint NOT NULL DEFAULT 0,
  ADD COLUMN recancel_ms bigint;
CREATE INDEX turngate_branch_recancel ON turngate_branch (recancel_ms) WHERE recancel_ms IS NOT NULL;
