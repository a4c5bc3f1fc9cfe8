-- Pushes the lease of running work out. A claim that has lapsed untaken is taken again: the work still runs.
-- KEYS: record
-- ARGV: running, leaseMs
-- Reply: 1 ours, 0 taken over or finished by another
local held = redis.call('GET', KEYS[1])
if held == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 1
end
if held then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
