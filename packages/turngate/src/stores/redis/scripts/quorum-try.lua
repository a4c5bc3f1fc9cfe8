-- Takes the lock on one node of a quorum: no fence, no queue.
-- KEYS: lock
-- ARGV: owner, leaseMs
-- Reply: list of 1 (ours) or 0 (held) and the milliseconds left
if redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') then
  return { 1, tonumber(ARGV[2]) }
end
return { redis.call('GET', KEYS[1]) == ARGV[1] and 1 or 0, redis.call('PTTL', KEYS[1]) }
