-- Takes those of several locks that are free and that nobody waits for; leaves the others alone.
-- KEYS: fence counter of each, then queue of each, then lock of each
-- ARGV: asked, fences (the most that one of them takes)
-- Reply: the fence of all that were taken, then the numbers of those left alone
-- include: asked
local call = redis.call
local count = #KEYS / 3
local time = call('TIME')
local fence = time[1] * 1000000 + time[2]
-- One fence above the counters of all: two commands, however many they are.
for _, last in ipairs(call('MGET', unpack(KEYS, 1, count))) do
  if last and tonumber(last) >= fence then
    fence = last + 1
  end
end
local last = string.format('%.0f', fence + ARGV[2] - 1)
local counters = {}
for i = 1, count do
  counters[2 * i - 1], counters[2 * i] = KEYS[i], last
end
call('MSET', unpack(counters))
local waited = call('EXISTS', unpack(KEYS, count + 1, 2 * count)) > 0
local text = string.format('%016.0f', fence)
local reply = { fence }
for i, owner in ipairs(owners) do
  local free = not (waited and call('EXISTS', KEYS[count + i]) == 1)
  if not (free and call('SET', KEYS[2 * count + i], text .. owner, 'PX', leases[i], 'NX')) then
    reply[#reply + 1] = i
  end
end
return reply
