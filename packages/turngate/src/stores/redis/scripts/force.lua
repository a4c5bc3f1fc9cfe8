-- Takes the name from all who hold it and all who wait. Those who still want it ask again.
-- KEYS: lock, queue, waiters, fence, shares, urgent
-- ARGV: none
-- Reply: 1 when somebody held it, else 0
-- include: queue
local held = redis.call('DEL', KEYS[1], KEYS[5])
local waiters = redis.call('HGETALL', KEYS[3])
redis.call('DEL', KEYS[2], KEYS[3], KEYS[6])
mint(KEYS[4], 1)
for i = 1, #waiters, 2 do
  local inbox = string.match(waiters[i + 1], '^%d+ %d+ %d+ %d+ %d+ (.+)$')
  if inbox then
    tell(inbox, 0, waiters[i])
  end
end
return held > 0 and 1 or 0
