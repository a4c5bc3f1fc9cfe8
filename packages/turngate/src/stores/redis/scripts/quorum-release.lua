-- Frees the lock on one node of a quorum.
-- KEYS: lock
-- ARGV: owner
-- Reply: 0 ours, 1 expired, 2 taken
local held = redis.call('GET', KEYS[1])
if held == ARGV[1] then
  redis.call('DEL', KEYS[1])
  return 0
end
return held and 2 or 1
