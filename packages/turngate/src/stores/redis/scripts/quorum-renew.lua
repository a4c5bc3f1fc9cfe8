-- Pushes leases out on one node of a quorum.
-- KEYS: one lock each
-- ARGV: asked
-- Reply: one digit for each: 0 ours, 1 expired, 2 taken
-- include: asked
local held = redis.call('MGET', unpack(KEYS))
local answers = {}
for i, owner in ipairs(owners) do
  if held[i] == owner then
    redis.call('PEXPIRE', KEYS[i], leases[i])
    answers[i] = '0'
  else
    answers[i] = held[i] and '2' or '1'
  end
end
return table.concat(answers)
