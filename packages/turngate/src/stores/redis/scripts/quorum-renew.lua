-- Pushes leases out on one node of a quorum.
-- KEYS: one lock each
-- ARGV: terms
-- Reply: one digit for each: 0 ours, 1 expired, 2 taken
-- terms: JSON text [owner, leaseMs, …], in the order of KEYS; as one argument it costs clients least.
local terms = cjson.decode(ARGV[1])
local answers = {}
for i = 1, #KEYS do
  local held = redis.call('GET', KEYS[i])
  if held == terms[2 * i - 1] then
    redis.call('PEXPIRE', KEYS[i], terms[2 * i])
    answers[i] = '0'
  else
    answers[i] = held and '2' or '1'
  end
end
return table.concat(answers)
