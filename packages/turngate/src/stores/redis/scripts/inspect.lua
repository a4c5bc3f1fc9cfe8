-- Who holds a name, in whichever way, and how many wait.
-- KEYS: lock, waiters, shares
-- ARGV: none
-- Reply: list of owner, fence, milliseconds left, holders, waiters; empty when free
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local owner, fence, left, holders, waiting = nil, '0', 0, 0, 0
local held = redis.call('GET', KEYS[1])
if held then
  owner, fence, holders = string.sub(held, 17), string.sub(held, 1, 16), 1
  left = redis.call('PTTL', KEYS[1])
end
local shares = redis.call('HGETALL', KEYS[3])
for i = 1, #shares, 2 do
  local expiry, minted = string.match(shares[i + 1], '^(%d+) (%d+) %d+$')
  if expiry and tonumber(expiry) > now then
    holders = holders + 1
    if minted >= fence then
      owner, fence, left = shares[i], minted, tonumber(expiry) - now
    end
  end
end
if not owner then
  return {}
end
for _, text in ipairs(redis.call('HVALS', KEYS[2])) do
  if tonumber(string.match(text, '^%d+')) > now then
    waiting = waiting + 1
  end
end
return { owner, fence, left, holders, waiting }
