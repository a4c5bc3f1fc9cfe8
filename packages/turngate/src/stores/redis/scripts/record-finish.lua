-- Puts the result in the place of the claim, unless another has taken it over. May be repeated: an
-- answer can be lost.
-- KEYS: record
-- ARGV: running, state, rest of the record, retentionMs
-- Reply: when it was stored (epoch ms, as text); nothing when another has it
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then
  local first, rest = string.match(held, '^[df](%d+) %d+ (.*)$')
  if rest == ARGV[3] then
    return first
  end
  return false
end
local time = redis.call('TIME')
local first = time[1] .. string.sub('00000' .. time[2], -6, -4)
redis.call('SET', KEYS[1], ARGV[2] .. first .. ' ' .. first + ARGV[4] .. ' ' .. ARGV[3], 'PX', ARGV[4])
return first
