-- Owners and leases (milliseconds, as text) of several wishes; as one argument they cost clients least.
-- asked: JSON list of owners; a number in it is the leaseMs of those behind it
local owners, leases = {}, {}
do
  local lease
  for _, word in ipairs(cjson.decode(ARGV[1])) do
    if type(word) == 'number' then
      lease = string.format('%.0f', word)
    else
      local i = #owners + 1
      owners[i], leases[i] = word, lease
    end
  end
end
