-- Takes several locks, or places in their queues: each one as by try, whatever becomes of the others.
-- KEYS: lock, queue, waiters and fence of each
-- ARGV: asked
-- Reply: list of what try replies; it ends before the first one that failed
-- asked: JSON list of owners, in the order of KEYS; a list [leaseMs, fences, queueMs, inbox] in it is
-- about those behind it.
-- include: queue
-- include: mutex
local asked, at, terms = cjson.decode(ARGV[1]), 1, nil
local answers = {}
for i = 1, #KEYS, 4 do
  if type(asked[at]) == 'table' then
    terms, at = asked[at], at + 1
  end
  LOCK, QUEUE, WAITERS, FENCE = KEYS[i], KEYS[i + 1], KEYS[i + 2], KEYS[i + 3]
  local fine, answer = pcall(try, asked[at], terms[1], terms[2], terms[3], terms[4])
  if not fine then
    break
  end
  answers[#answers + 1], at = answer, at + 1
end
return answers
