-- Frees those of several locks that are ours and that nobody waits for; leaves the others alone.
-- KEYS: queue of each, then lock of each
-- ARGV: owners (JSON list)
-- Reply: 0 as for one of ours, then the numbers of those left alone
local call = redis.call
local count = #KEYS / 2
local held = call('MGET', unpack(KEYS, count + 1))
local waited = call('EXISTS', unpack(KEYS, 1, count)) > 0
local ours, reply = {}, { 0 }
for i, owner in ipairs(cjson.decode(ARGV[1])) do
  local mine = held[i] and string.sub(held[i], 17) == owner
  if mine and not (waited and call('EXISTS', KEYS[i]) == 1) then
    ours[#ours + 1] = KEYS[count + i]
  else
    reply[#reply + 1] = i
  end
end
if ours[1] then
  call('DEL', unpack(ours))
end
return reply
