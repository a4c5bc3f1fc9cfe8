-- Gives permits back and serves the queue, or gives up a place in the queue.
-- KEYS: shares, queue, urgent, waiters, fence
-- ARGV: owner
-- Reply: 0 ours, 1 expired
-- include: queue
-- include: shares
local owner = ARGV[1]
load()
local mine = redis.call('HGET', SHARES, owner)
local answer = 1
if mine then
  local expiry, take = string.match(mine, '^(%d+) %d+ (%d+)$')
  redis.call('HDEL', SHARES, owner)
  used = used - take
  save()
  answer = tonumber(expiry) > now and 0 or 1
elseif redis.call('HDEL', WAITERS, owner) == 1 then
  redis.call('LREM', QUEUE, 1, owner)
  redis.call('LREM', URGENT, 1, owner)
end
serve(nil, false)
return answer
