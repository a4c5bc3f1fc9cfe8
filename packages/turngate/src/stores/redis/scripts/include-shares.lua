-- Several holders per name. The hash has owner -> "expiry fence take" and "" -> "used sweep": permits
-- in use, and a time before which none of them expires. One key, so that no part is lost alone.
local SHARES, QUEUE, URGENT, WAITERS, FENCE = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local NEVER = 9007199254740991
local used, sweep_at = 0, NEVER
-- Permits kept for waiters who have to ask for them, and for how long.
local kept, kept_ms = 0, 0

local function save()
  if used <= 0 then
    redis.call('DEL', SHARES)
  else
    redis.call('HSET', SHARES, '', digits(used) .. ' ' .. digits(sweep_at))
  end
end

-- Forgets expired permits, in any call on the name.
local function load()
  local text = redis.call('HGET', SHARES, '')
  if not text then
    return
  end
  local in_use, sweep = string.match(text, '^(%d+) (%d+)$')
  used, sweep_at = tonumber(in_use), tonumber(sweep)
  if sweep_at > now then
    return
  end
  used, sweep_at = 0, NEVER
  local all = redis.call('HGETALL', SHARES)
  for i = 1, #all, 2 do
    local expiry, take = string.match(all[i + 1], '^(%d+) %d+ (%d+)$')
    if expiry and tonumber(expiry) <= now then
      redis.call('HDEL', SHARES, all[i])
    elseif expiry then
      used = used + take
      sweep_at = math.min(sweep_at, tonumber(expiry))
    end
  end
  save()
end

local function grant(owner, lease, fences, take)
  local fence = mint(FENCE, fences)
  local expiry = now + lease
  redis.call('HSET', SHARES, owner, digits(expiry) .. ' ' .. digits(fence) .. ' ' .. digits(take))
  used, sweep_at = used + take, math.min(sweep_at, expiry)
  save()
  if redis.call('PTTL', SHARES) < tonumber(lease) then
    redis.call('PEXPIRE', SHARES, lease)
  end
  return fence
end

local function revoke(owner, take)
  redis.call('HDEL', SHARES, owner)
  used = used - take
  save()
end

local function leave(list, owner)
  redis.call('LREM', list, 1, owner)
  redis.call('HDEL', WAITERS, owner)
end

-- Gives permits to the waiters of one list, in order, while they fit. Returns true when all before
-- the asker have theirs.
local function serve_list(list, asker)
  local at = 0
  while true do
    local owner = redis.call('LINDEX', list, at)
    if not owner or owner == asker then
      return true
    end
    local waiting = waiter(list, WAITERS, owner)
    if waiting then
      if used + kept + waiting.take > waiting.limit then
        return false
      end
      if waiting.can_hear then
        local fence = grant(owner, waiting.lease, waiting.fences, waiting.take)
        if tell(waiting.inbox, fence, owner) > 0 then
          leave(list, owner)
        else
          revoke(owner, waiting.take)
          at = at + 1
        end
      else
        if waiting.can_ask then
          tell(waiting.inbox, 0, owner)
        end
        kept, kept_ms = kept + waiting.take, math.max(kept_ms, waiting.left)
        at = at + 1
      end
    end
  end
end

-- Urgent waiters first; while one of them does not fit, nobody behind may overtake it.
local function serve(asker, urgent)
  local served = serve_list(URGENT, asker)
  if urgent or not served then
    return served
  end
  return serve_list(QUEUE, asker)
end
