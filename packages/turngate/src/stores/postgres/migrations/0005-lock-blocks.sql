-- Locks: how many fences the newest grant reserved, so that the next grant is above all of them. A
-- process of the version before leaves it as it is, which at worst skips a few numbers.
ALTER TABLE turngate_lock ADD COLUMN fences bigint NOT NULL DEFAULT 1;
-- Fences of locks in advisory session mode. CACHE 1: a session that caches numbers would hand out
-- smaller ones after a later session's.
CREATE SEQUENCE turngate_lock_fence AS bigint CACHE 1;
