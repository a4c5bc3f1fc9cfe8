-- One holder per name. The lock is the text fence (16 digits) .. owner and expires by itself.
local LOCK, QUEUE, WAITERS, FENCE = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

local function grant(owner, lease, fences)
  local fence = mint(FENCE, fences)
  redis.call('SET', LOCK, string.format('%016.0f', fence) .. owner, 'PX', lease)
  return fence
end

-- Gives the free lock to the first waiter who can be reached. Returns nil when it stays free for the
-- asker, else how long it is somebody else's.
local function serve(asker)
  local at = 0
  while true do
    local owner = redis.call('LINDEX', QUEUE, at)
    if not owner then
      return nil
    end
    if owner == asker then
      redis.call('LREM', QUEUE, 1, owner)
      redis.call('HDEL', WAITERS, owner)
      return nil
    end
    local waiting = waiter(QUEUE, WAITERS, owner)
    if waiting and waiting.can_hear then
      local fence = grant(owner, waiting.lease, waiting.fences)
      if tell(waiting.inbox, fence, owner) > 0 then
        redis.call('LREM', QUEUE, 1, owner)
        redis.call('HDEL', WAITERS, owner)
        return tonumber(waiting.lease)
      end
      -- Nobody listens: its process is gone or reconnecting. It keeps its place and is passed over.
      redis.call('DEL', LOCK)
      at = at + 1
    elseif waiting then
      if waiting.can_ask then
        tell(waiting.inbox, 0, owner)
      end
      return waiting.left -- Kept free for it while its place lasts.
    end
  end
end

-- Returns the fence, or 0 and below: what is left of somebody's lease, negated.
local function try(owner, lease, fences, queue_ms, inbox)
  if redis.call('EXISTS', LOCK, QUEUE) == 0 then
    return grant(owner, lease, tonumber(fences))
  end
  local held, left = redis.call('GET', LOCK), nil
  if held then
    if string.sub(held, 17) == owner then
      return tonumber(string.sub(held, 1, 16))
    end
    left = redis.call('PTTL', LOCK)
  else
    left = serve(owner)
    if not left then
      return grant(owner, lease, tonumber(fences))
    end
  end
  if queue_ms ~= '0' then
    enqueue(QUEUE, WAITERS, owner, tonumber(queue_ms), lease .. ' ' .. fences .. ' 1 1 ' .. inbox)
  end
  return -math.max(left, 1)
end

-- Returns 0 when it was ours, 1 when the lease had ended, 2 when somebody else holds it.
local function release(owner)
  local held = redis.call('GET', LOCK)
  if held and string.sub(held, 17) == owner then
    -- First of all a write that is allowed when memory is short: the rest of the script then is too.
    redis.call('DEL', LOCK)
    return 0
  end
  if redis.call('HDEL', WAITERS, owner) == 1 then
    redis.call('LREM', QUEUE, 1, owner)
  end
  return held and 2 or 1
end
