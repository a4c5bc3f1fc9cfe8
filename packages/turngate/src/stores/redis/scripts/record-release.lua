-- Frees an identity whose work has failed.
-- KEYS: record
-- ARGV: running
-- Reply: 1 freed, 0 it was not ours any more
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
