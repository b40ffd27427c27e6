/**
 * What Redis does in one step. Every script touches keys of one slot only, and each of them is in
 * KEYS, so that a Cluster can run it. Times are Redis' own: a gateway says how long, never until
 * when. The value of a tombstone is compared with the time at which a sign-in began. Both are the
 * time of the server where the processes meet, because the nodes of a Cluster have clocks of their
 * own.
 */

const now = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`

/**
 * Members of an index are scored by their absolute expiry, and the index lives as long as the
 * longest of them: what has expired for being idle may still be in the memory of a process whose
 * clock is behind, which has to hear of a logout.
 */
const index = `
local function prune(index)
  redis.call('ZREMRANGEBYSCORE', index, '-inf', now)
end
local function add(index, member, expires_at)
  redis.call('ZADD', index, expires_at, member)
  prune(index)
  local last = redis.call('ZREVRANGE', index, 0, 0, 'WITHSCORES')
  if last[2] then redis.call('PEXPIREAT', index, last[2]) end
end`

/**
 * A new session's first step, in the slot of its (iss, sub): refuses it when the sub was ended
 * since it began, or else enters it in the index. From here on an order to end the sub knows of it.
 */
const enterSub = `
${now}${index}
local session, remaining, begun_at = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local ended_at = redis.call('GET', KEYS[2])
if ended_at and begun_at <= tonumber(ended_at) then return 0 end
add(KEYS[1], session, now + remaining)
return 1`

/**
 * Its second step, in the slot of its (iss, sid): refuses it when the sid, or between the steps the
 * session itself, was ended; or else stores and indexes it.
 */
const create = `
${now}${index}
local hash, sealed, sub = ARGV[1], ARGV[2], ARGV[3]
local idle_timeout, remaining, begun_at, run = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]
local ended_at = redis.call('GET', KEYS[3])
if ended_at and begun_at <= tonumber(ended_at) then return 0 end
if redis.call('EXISTS', KEYS[4]) == 1 then return 0 end
local ttl = math.min(idle_timeout, remaining)
if ttl <= 0 then return 1 end
redis.call('HSET', KEYS[1], 'sealed', sealed, 'version', 1, 'expires_at', now + remaining, 'sub', sub, 'run', run)
redis.call('PEXPIRE', KEYS[1], ttl)
add(KEYS[2], hash, now + remaining)
return 1`

/**
 * Replaces the sealed bytes if nobody else did since they were read, tells the other processes, and
 * leaves the expiry as it is.
 */
const replace = `
local sealed, version, channel, notice, run = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local stored = redis.call('HGET', KEYS[1], 'version')
if not stored then return 'gone' end
if stored ~= version then return 'conflict' end
redis.call('PUBLISH', channel, notice)
redis.call('HSET', KEYS[1], 'sealed', sealed, 'version', version + 1, 'run', run)
return 'replaced'`

/** Moves the idle expiry, never past the absolute one. */
const touch = `
${now}
local idle_timeout = tonumber(ARGV[1])
local expires_at = redis.call('HGET', KEYS[1], 'expires_at')
if not expires_at then return 0 end
redis.call('PEXPIRE', KEYS[1], math.min(idle_timeout, expires_at - now))
return redis.call('EXISTS', KEYS[1])`

/** A tombstone never gets older, and never stands shorter than before. */
const tombstone = `
local function raise(tombstone, at, ttl)
  at = math.max(at, tonumber(redis.call('GET', tombstone) or at))
  ttl = math.max(ttl, redis.call('PTTL', tombstone))
  redis.call('SET', tombstone, string.format('%.0f', at), 'PX', ttl)
end`

/** Raises a tombstone that Redis may have lost. */
const raiseTombstone = `
${tombstone}
raise(KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]))
return 1`

/**
 * Takes an order to end all sessions of one index, in its slot: unless the token was taken before,
 * raises the tombstone, tells the other processes of it, and answers who is there. Whoever is added
 * later began after the order, or is refused.
 */
const beginEnding = `
${now}${index}${tombstone}
local at, ttl, channel, notice = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4]
if redis.call('EXISTS', KEYS[3]) == 1 then return false end
-- First of all something that frees memory: after that Redis lets a script write even when it is full, and a logout goes through.
prune(KEYS[1])
raise(KEYS[2], at, ttl)
redis.call('PUBLISH', channel, notice)
return redis.call('ZRANGE', KEYS[1], 0, -1)`

/**
 * Ends sessions of one slot: tells the other processes, deletes the sessions with their leases, and
 * leaves a tombstone for each (when they are ended by their sub: one may be between the two steps
 * of its creation). Answers what was ended. They stay in their index if it has to be known whom to
 * end until all processes have been told. KEYS are the index, and three for each session.
 */
const endSessions = `
${now}${index}
local channel, notice, tombstone_ttl, leave = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1'
prune(KEYS[1])
if #ARGV > 4 then redis.call('PUBLISH', channel, notice) end
local answer = {}
for n = 5, #ARGV do
  local hash, key = ARGV[n], (n - 5) * 3 + 2
  local found = redis.call('HMGET', KEYS[key], 'sealed', 'sub')
  if found[1] then
    answer[#answer + 1] = hash
    answer[#answer + 1] = found[1]
    answer[#answer + 1] = found[2]
  end
  redis.call('DEL', KEYS[key], KEYS[key + 1])
  if leave then redis.call('ZREM', KEYS[1], hash) end
  if tombstone_ttl > 0 then redis.call('SET', KEYS[key + 2], '1', 'PX', tombstone_ttl) end
end
return answer`

/**
 * After sessions of an index have ended and all processes have been told: takes them out of the
 * index and, when they were the last, takes the token's jti. 0 when somebody else took it.
 */
const finishEnding = `
${now}${index}
local jti_ttl = tonumber(ARGV[1])
prune(KEYS[1])
for n = 2, #ARGV do redis.call('ZREM', KEYS[1], ARGV[n]) end
if jti_ttl == 0 then return 1 end
return redis.call('SET', KEYS[2], '1', 'PX', jti_ttl, 'NX') and 1 or 0`

/**
 * Tells the processes that listen at the server which holds the key, and answers how many they are.
 */
const announce = `
return redis.call('PUBLISH', ARGV[1], ARGV[2])`

/**
 * A sign of life: answers how many listen to a channel to which the time of sending is sent, and
 * the epoch and the time of the server which holds the key. PERSIST changes nothing, but is a
 * write: a replica refuses it, as does a primary without the replicas it needs.
 */
const beat = `
${now}
local epoch_if_none, channel, sent_at = ARGV[1], ARGV[2], ARGV[3]
redis.call('PERSIST', KEYS[1])
local epoch = redis.call('GET', KEYS[1])
if not epoch then
  epoch = epoch_if_none
  redis.call('SET', KEYS[1], epoch)
end
local told = 0
if channel ~= '' then told = redis.call('PUBLISH', channel, sent_at) end
return { told, epoch, string.format('%.0f', now) }`

/** The time of the server which holds the key, in ms since the epoch. */
const clock = `
${now}
return string.format('%.0f', now)`

/** Prolongs a lease that this owner still holds. */
const renewLease = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`

/** Gives a lease back that this owner still holds. */
const releaseLease = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`

export const scripts = {
  enterSub,
  create,
  replace,
  touch,
  beginEnding,
  raiseTombstone,
  endSessions,
  finishEnding,
  announce,
  beat,
  clock,
  renewLease,
  releaseLease,
} as const

export type ScriptName = keyof typeof scripts
