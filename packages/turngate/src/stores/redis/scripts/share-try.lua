-- Takes permits of a name, or a place in its queue. The same owner again: the same answer.
-- KEYS: shares, queue, urgent, waiters, fence
-- ARGV: owner, leaseMs, fences, queueMs (0: no place), inbox, take, limit, urgent (1 or 0)
-- Reply: the fence; 0 and below: held, negated milliseconds left
-- include: queue
-- include: shares
local owner, lease, fences, queue_ms, inbox = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local take, limit, urgent = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8] == '1'
load()
local mine = redis.call('HGET', SHARES, owner)
if mine then
  local expiry, fence = string.match(mine, '^(%d+) (%d+)')
  if tonumber(expiry) > now then
    return tonumber(fence)
  end
end
local list = urgent and URGENT or QUEUE
if serve(owner, urgent) and used + kept + take <= limit then
  if redis.call('HDEL', WAITERS, owner) == 1 then
    redis.call('LREM', list, 1, owner)
  end
  return grant(owner, lease, tonumber(fences), take)
end
if queue_ms ~= '0' then
  local terms = lease .. ' ' .. fences .. ' ' .. ARGV[6] .. ' ' .. ARGV[7] .. ' ' .. inbox
  enqueue(list, WAITERS, owner, tonumber(queue_ms), terms)
end
local left = used > 0 and sweep_at - now or kept_ms
return -math.max(left, 1)
