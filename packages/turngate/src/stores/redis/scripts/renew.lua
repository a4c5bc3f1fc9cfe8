-- Pushes leases out. PEXPIRE and never SET: it must also work when memory is short.
-- KEYS: one lock each
-- ARGV: asked
-- Reply: one digit for each: 0 ours, 1 expired, 2 taken
-- include: asked
local held = redis.call('MGET', unpack(KEYS))
local answers = {}
for i, owner in ipairs(owners) do
  if not held[i] then
    answers[i] = '1'
  elseif string.sub(held[i], 17) == owner then
    redis.call('PEXPIRE', KEYS[i], leases[i])
    answers[i] = '0'
  else
    answers[i] = '2'
  end
end
return table.concat(answers)
