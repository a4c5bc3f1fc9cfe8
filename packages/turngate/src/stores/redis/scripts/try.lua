-- Takes the lock, or a place in its queue. The same owner again: the same answer, nothing prolonged.
-- KEYS: lock, queue, waiters, fence
-- ARGV: owner, leaseMs, fences, queueMs (0: no place), inbox
-- Reply: the fence; 0 and below: held, negated milliseconds left

-- Free and nobody waits: the common case, written for speed and without the set-up of the rest.
local call = redis.call
if call('EXISTS', KEYS[1], KEYS[2]) == 0 then
  local time = call('TIME')
  local text = time[1] .. string.sub('00000' .. time[2], -6)
  local fence = tonumber(text)
  -- A number handed over as such keeps all its digits.
  local last = call('GETSET', KEYS[4], fence + ARGV[3] - 1)
  if last and tonumber(last) >= fence then
    fence = last + 1
    text = string.format('%016.0f', fence)
    call('SET', KEYS[4], fence + ARGV[3] - 1)
  end
  call('SET', KEYS[1], text .. ARGV[1], 'PX', ARGV[2])
  return fence
end
-- include: queue
-- include: mutex
return try(ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5])
