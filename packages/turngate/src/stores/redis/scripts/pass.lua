-- Release and try of the same process in one step: whoever waits is served first.
-- KEYS: lock, queue, waiters, fence
-- ARGV: owner, next owner, leaseMs, fences, queueMs (0: no place), inbox
-- Reply: list of the answers of release and try
-- include: queue
-- include: mutex
local answer = release(ARGV[1])
return { answer, try(ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]) }
