-- Frees several locks, or gives up places in their queues: each one as by release.
-- KEYS: lock, queue, waiters and fence of each
-- ARGV: owners
-- Reply: list of what release replies; it ends before the first one that failed
-- owners: JSON list, in the order of KEYS
-- include: queue
-- include: mutex
local answers = {}
for i, owner in ipairs(cjson.decode(ARGV[1])) do
  LOCK, QUEUE, WAITERS, FENCE = KEYS[4 * i - 3], KEYS[4 * i - 2], KEYS[4 * i - 1], KEYS[4 * i]
  local fine, answer = pcall(free, owner)
  if not fine then
    break
  end
  answers[i] = answer
end
return answers
