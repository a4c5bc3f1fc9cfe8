-- The queue of waiting attempts and the fence counter; what all lock scripts share.
-- A waiter is the text "deadline lease fences take limit inbox" in the hash of waiters, its place an
-- entry of a list. inbox: "" asks by itself; "!channel" can be given the lock by PUBLISH; "?channel"
-- can only be told to ask, because PUBLISH cannot say whether it was heard (cluster, WAIT).
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)

-- Digits only: Lua would write large numbers with an exponent.
local function digits(number)
  return string.format('%.0f', number)
end

-- Reserves `count` fences and returns the first. Server time carries it over a lost counter.
local function mint(counter, count)
  -- A number handed over as such keeps all its digits.
  local last = tonumber(redis.call('GETSET', counter, now_us + count - 1) or 0)
  if last < now_us then
    return now_us
  end
  redis.call('SET', counter, last + count)
  return last + 1
end

-- Tells an inbox: fence (16 digits, 0 for "ask") and owner. Returns how many heard it. Whoever may
-- not publish is heard by nobody: an error here would leave the script half done.
local function tell(inbox, fence, owner)
  local text = string.format('%016.0f', fence) .. owner
  local heard = redis.pcall('PUBLISH', string.sub(inbox, 2), text)
  return type(heard) == 'number' and heard or 0
end

-- Takes the place again or for the first time; it lapses after queue_ms.
local function enqueue(list, waiters, owner, queue_ms, terms)
  local fresh = redis.call('HSET', waiters, owner, digits(now + queue_ms) .. ' ' .. terms)
  if fresh == 1 then
    redis.call('RPUSH', list, owner)
  end
  if redis.call('PTTL', waiters) < queue_ms then
    redis.call('PEXPIRE', waiters, queue_ms)
  end
  if redis.call('PTTL', list) < queue_ms then
    redis.call('PEXPIRE', list, queue_ms)
  end
end

-- Returns the waiter, or nil after dropping one whose place has lapsed.
local function waiter(list, waiters, owner)
  local text = redis.call('HGET', waiters, owner)
  if text then
    local deadline, lease, fences, take, limit, inbox =
      string.match(text, '^(%d+) (%d+) (%d+) (%d+) (%d+) (.*)$')
    if tonumber(deadline) > now then
      return {
        left = tonumber(deadline) - now, lease = lease, fences = tonumber(fences),
        take = tonumber(take), limit = tonumber(limit), inbox = inbox,
        can_ask = string.sub(inbox, 1, 1) == '?', can_hear = string.sub(inbox, 1, 1) == '!',
      }
    end
  end
  redis.call('LREM', list, 1, owner)
  redis.call('HDEL', waiters, owner)
  return nil
end
