-- Pushes leases of permits out.
-- KEYS: one hash of shares each
-- ARGV: asked
-- Reply: one digit for each: 0 ours, 1 expired
-- include: queue
-- include: asked
local answers = {}
for i, owner in ipairs(owners) do
  local lease = leases[i]
  local mine = redis.call('HGET', KEYS[i], owner)
  local expiry, size = string.match(mine or '', '^(%d+) (%d+ %d+)$')
  if expiry and tonumber(expiry) > now then
    -- First a write that is allowed when memory is short: HSET then is too.
    redis.call('PEXPIRE', KEYS[i], math.max(redis.call('PTTL', KEYS[i]), lease))
    redis.call('HSET', KEYS[i], owner, digits(now + lease) .. ' ' .. size)
    answers[i] = '0'
  else
    answers[i] = '1'
  end
end
return table.concat(answers)
