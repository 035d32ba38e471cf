/*
 * The decisions of the admission backend, each in one script: Redis runs them one after the other, so what
 * they read is what they change. Time is the caller's and comes as an argument; only liveness runs on the
 * clock of the server. Every script takes the keys of `KEYS` in their order.
 */
import { RedisScript } from '../../redis/script.ts'

const PRELUDE = `
local slots, waiters, wmeta, wexpire, keyserved = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local window, arrivals, services, me = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local instance, ttl, now = ARGV[1], ARGV[2], tonumber(ARGV[3])
local concurrency, limit = tonumber(ARGV[4]), tonumber(ARGV[5])
local fair, lifo = ARGV[6] == '1', ARGV[7] == '1'
-- The keys of other instances stand beside this one's, behind whatever prefix the client puts before it.
local alive = string.sub(me, 1, #me - #instance)

local function drop_waiter(id)
  redis.call('ZREM', waiters, id)
  redis.call('HDEL', wmeta, id)
  redis.call('ZREM', wexpire, id)
end

-- Drops the slots of instances that are gone; answers how many are left.
local function count_held()
  local known, held = {}, 0
  local all = redis.call('HGETALL', slots)
  for i = 1, #all, 2 do
    local owner = all[i + 1]
    if known[owner] == nil then known[owner] = redis.call('EXISTS', alive .. owner) == 1 end
    if known[owner] then held = held + 1 else redis.call('HDEL', slots, all[i]) end
  end
  return held
end

local function prune()
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', wexpire, '-inf', '(' .. ARGV[3])) do
    drop_waiter(id)
  end
end

-- Slots that can be given now, and whether the window is spent.
local function count_free(held)
  local free, spent = math.huge, false
  if concurrency >= 0 then free = concurrency - held end
  if limit >= 0 then
    local left = limit - tonumber(redis.call('GET', window) or '0')
    spent = left <= 0
    free = math.min(free, left)
  end
  return free, spent
end

local function hash_values(hash, fields)
  local values = {}
  for from = 1, #fields, 1000 do
    local to = math.min(from + 999, #fields)
    for _, value in ipairs(redis.call('HMGET', hash, unpack(fields, from, to))) do
      values[#values + 1] = value
    end
  end
  return values
end

-- Everybody from the first place to the priority of score, in the order of service; at most count.
local function in_order(score, count)
  local rows = redis.call('ZRANGEBYSCORE', waiters, '-inf', score, 'WITHSCORES')
  local ids = {}
  for i = 1, #rows, 2 do ids[#ids + 1] = rows[i] end
  local metas, line = hash_values(wmeta, ids), {}
  for i, id in ipairs(ids) do
    local seq, key = string.match(metas[i] or '0|', '^(%d+)|(.*)$')
    line[i] = { id = id, score = tonumber(rows[2 * i]), seq = tonumber(seq), key = key }
  end
  table.sort(line, function(a, b)
    if a.score ~= b.score then return a.score < b.score end
    if lifo then return a.seq > b.seq end
    return a.seq < b.seq
  end)
  local ordered = {}
  if not fair then
    for i = 1, math.min(count, #line) do ordered[i] = line[i].id end
    return ordered
  end
  local served, latest = {}, tonumber(redis.call('GET', services) or '0')
  local first = 1
  while first <= #line and #ordered < count do
    local keys, groups = {}, {}
    local last = first
    while last <= #line and line[last].score == line[first].score do
      local waiter = line[last]
      if not groups[waiter.key] then
        groups[waiter.key] = { place = last }
        keys[#keys + 1] = waiter.key
      end
      table.insert(groups[waiter.key], waiter.id)
      last = last + 1
    end
    local stored = hash_values(keyserved, keys)
    for i, key in ipairs(keys) do
      groups[key].at = served[key] or tonumber(stored[i] or '0') or 0
    end
    table.sort(keys, function(a, b)
      if groups[a].at ~= groups[b].at then return groups[a].at < groups[b].at end
      return groups[a].place < groups[b].place
    end)
    local round, more = 1, true
    while more and #ordered < count do
      more = false
      for _, key in ipairs(keys) do
        local id = groups[key][round]
        if id and #ordered < count then
          ordered[#ordered + 1] = id
          served[key] = latest + #ordered
        end
        if groups[key][round + 1] then more = true end
      end
      round = round + 1
    end
    first = last
  end
  return ordered
end
`

const ADMIT = `
local id, key, priority = ARGV[8], ARGV[9], ARGV[10]
local retry, late, ends, period = tonumber(ARGV[11]), tonumber(ARGV[12]), tonumber(ARGV[13]), ARGV[14]

redis.call('SET', me, '1', 'PX', ttl)
if redis.call('HEXISTS', slots, id) == 1 then
  -- Its run moved: whoever asks now holds it.
  redis.call('HSET', slots, id, instance)
  return { 1 }
end
local held = count_held()
prune()
local seq = string.match(redis.call('HGET', wmeta, id) or '', '^(%d+)|')
seq = seq or string.format('%.0f', redis.call('INCR', arrivals))
redis.call('HSET', wmeta, id, seq .. '|' .. key)
redis.call('ZADD', waiters, priority, id)

local free, spent = count_free(held)
local admitted = free > 0
if admitted and free < redis.call('ZCARD', waiters) then
  admitted = redis.call('ZCOUNT', waiters, '-inf', '(' .. priority) < free
  if admitted then
    admitted = false
    for _, next in ipairs(in_order(priority, free)) do
      if next == id then admitted = true end
    end
  end
end
if not admitted then
  local due = now + retry
  if spent then due = ends end
  redis.call('ZADD', wexpire, due + late, id)
  return { 0, string.format('%.0f', due) }
end

drop_waiter(id)
redis.call('HSET', slots, id, instance)
if fair then
  redis.call('HSET', keyserved, key, redis.call('INCR', services))
  if redis.call('HLEN', keyserved) > 20000 then
    -- A key that is forgotten counts as never served.
    local oldest = tonumber(redis.call('GET', services)) - 10000
    local all = redis.call('HGETALL', keyserved)
    for i = 1, #all, 2 do
      if tonumber(all[i + 1]) <= oldest then redis.call('HDEL', keyserved, all[i]) end
    end
  end
end
if limit >= 0 then
  redis.call('INCR', window)
  redis.call('PEXPIRE', window, 2 * tonumber(period))
end
return { 1 }
`

const NEXT = `
local most = tonumber(ARGV[8])
local held = count_held()
prune()
local free = count_free(held)
if free <= 0 then return {} end
return in_order('+inf', math.min(free, most))
`

const RELEASE = `
local id, queue, channel = ARGV[8], ARGV[9], ARGV[10]
drop_waiter(id)
if redis.call('HDEL', slots, id) == 0 then return 0 end
redis.call('PUBLISH', channel, queue)
return 1
`

/** Takes a slot, or a place in line. Answers `[1]`, or `[0, when to ask again]`. */
export const ADMIT_SCRIPT = new RedisScript(PRELUDE + ADMIT)

/** Waiter ids that would be admitted now, first come first. */
export const NEXT_SCRIPT = new RedisScript(PRELUDE + NEXT)

/** Gives a slot or a place in line back, and says in which queue a slot came free. */
export const RELEASE_SCRIPT = new RedisScript(PRELUDE + RELEASE)
