-- Pushes leases out. PEXPIRE and never SET: it must also work when memory is short.
-- KEYS: one lock each
-- ARGV: terms
-- Reply: one digit for each: 0 ours, 1 expired, 2 taken
-- terms: JSON text [owner, leaseMs, …], in the order of KEYS; as one argument it costs clients least.
local terms = cjson.decode(ARGV[1])
local answers = {}
for i = 1, #KEYS do
  local held = redis.call('GET', KEYS[i])
  if not held then
    answers[i] = '1'
  elseif string.sub(held, 17) == terms[2 * i - 1] then
    redis.call('PEXPIRE', KEYS[i], terms[2 * i])
    answers[i] = '0'
  else
    answers[i] = '2'
  end
end
return table.concat(answers)
