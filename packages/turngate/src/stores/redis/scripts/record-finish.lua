-- Puts the result in the place of the claim, unless another has taken it over. May be repeated: an
-- answer can be lost.
-- KEYS: record
-- ARGV: running, state, rest of the record, retentionMs
-- Reply: when it was stored and when it ends (epoch ms, as text); nothing when another has it
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then
  local first, expires, rest = string.match(held, '^[df](%d+) (%d+) (.*)$')
  if rest == ARGV[3] then
    return { first, expires }
  end
  return false
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local first, expires = string.format('%.0f', now), string.format('%.0f', now + ARGV[4])
redis.call('SET', KEYS[1], ARGV[2] .. first .. ' ' .. expires .. ' ' .. ARGV[3], 'PX', ARGV[4])
return { first, expires }
