-- Frees the lock and serves the queue, or gives up a place in the queue.
-- KEYS: lock, queue, waiters, fence
-- ARGV: owner
-- Reply: 0 ours, 1 expired, 2 taken

-- Ours and nobody waits: the common case without the set-up of the rest.
local held = redis.call('GET', KEYS[1])
local ours = held and string.sub(held, 17) == ARGV[1]
if ours and redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('DEL', KEYS[1])
  return 0
end
-- include: queue
-- include: mutex
local answer = release(ARGV[1])
if answer ~= 2 then
  serve(nil)
end
return answer
