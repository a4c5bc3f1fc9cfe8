-- Who holds the lock on one node of a quorum.
-- KEYS: lock
-- ARGV: none
-- Reply: list of owner (nil when free) and milliseconds left
return { redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1]) }
