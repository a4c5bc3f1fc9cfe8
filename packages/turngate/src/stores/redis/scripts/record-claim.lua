-- Claims an identity, or says what stands there: running work or a finished record.
-- KEYS: record
-- ARGV: running, leaseMs
-- Reply: nothing when it is claimed now, otherwise what stands there
if redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') then
  return false
end
return redis.call('GET', KEYS[1])
