/**
 * The Lua scripts. All keys of a script are in KEYS and in one slot, so that a Cluster can run it;
 * except `read`: a single primary gets keys of several slots. The clock of Redis decides when a key
 * expires, so the gateway sends durations only.
 *
 * The value of a tombstone is compared with the time at which a sign-in began. Both are the time of
 * the server of the notices, because the nodes of a Cluster have different clocks.
 */

const now = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`

/**
 * The score of a member of an index is its absolute expiry; the index expires with its last member.
 * A session past its idle timeout stays: a process whose clock is behind may still have it in
 * memory, and must be notified of a logout.
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

/** Raises a tombstone: neither its time nor its expiry ever moves backwards. */
const tombstone = `
local function raise(tombstone, at, ttl)
  at = math.max(at, tonumber(redis.call('GET', tombstone) or at))
  ttl = math.max(ttl, redis.call('PTTL', tombstone))
  redis.call('SET', tombstone, string.format('%.0f', at), 'PX', ttl)
end`

export const scripts = {
  /**
   * The first step of a new session, in the slot of its (iss, sub): adds it to the index, so that a
   * logout of the sub finds it, unless the sub was ended since the sign-in began.
   */
  enterSub: `
${now}${index}
local session, remaining, begun_at = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local ended_at = redis.call('GET', KEYS[2])
if ended_at and begun_at <= tonumber(ended_at) then return 0 end
add(KEYS[1], session, now + remaining)
return 1`,

  /**
   * The second step, in the slot of its (iss, sid): stores and indexes the session, unless the sid
   * was ended, or the session itself between the two steps.
   */
  create: `
${now}${index}
local hash, sealed, sub = ARGV[1], ARGV[2], ARGV[3]
local idle_timeout, remaining, begun_at, run = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]
local ended_at = redis.call('GET', KEYS[3])
if ended_at and begun_at <= tonumber(ended_at) then return 0 end
if redis.call('EXISTS', KEYS[4]) == 1 then return 0 end
local ttl = math.min(idle_timeout, remaining)
if ttl <= 0 then return 1 end
redis.call('HSET', KEYS[1], 'sealed', sealed, 'version', 1, 'expires_at', now + remaining, 'sub', sub, 'run', run,
  'begun_at', ARGV[6])
redis.call('PEXPIRE', KEYS[1], ttl)
add(KEYS[2], hash, now + remaining)
return 1`,

  /**
   * Replaces the sealed bytes unless they were replaced since they were read, and the job if one is
   * given (an empty one: removes it). Notifies the other processes, unless the notice is empty. The
   * expiry stays as it is, and so does the run if it is `same`.
   */
  replace: `
local sealed, version, channel, notice, run = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local job, job_outlives = ARGV[6], ARGV[7]
local stored = redis.call('HGET', KEYS[1], 'version')
if not stored then return 'gone' end
if stored ~= version then return 'conflict' end
if notice ~= '' then redis.call('PUBLISH', channel, notice) end
local values = { 'sealed', sealed, 'version', version + 1 }
if run ~= 'same' then values[5], values[6] = 'run', run end
redis.call('HSET', KEYS[1], unpack(values))
if job == '' then redis.call('DEL', KEYS[2]) end
if job and job ~= '' then
  redis.call('HSET', KEYS[2], 'sealed', job)
  redis.call('PEXPIREAT', KEYS[2], string.format('%.0f', redis.call('HGET', KEYS[1], 'expires_at') + job_outlives))
end
return 'replaced'`,

  /**
   * Reads sessions: the sealed bytes, the version, the run, for how long each lives if nothing
   * moves its expiry, and when its sign-in began.
   */
  read: `
local found = {}
for n, session in ipairs(KEYS) do
  local values = redis.call('HMGET', session, 'sealed', 'version', 'run', 'begun_at')
  found[n] = { values[1], values[2], values[3], redis.call('PTTL', session), values[4] }
end
return found`,

  /** Moves the idle expiry, never past the absolute one. */
  touch: `
${now}
local idle_timeout = tonumber(ARGV[1])
local expires_at = redis.call('HGET', KEYS[1], 'expires_at')
if not expires_at then return 0 end
redis.call('PEXPIRE', KEYS[1], math.min(idle_timeout, expires_at - now))
return redis.call('EXISTS', KEYS[1])`,

  /** Raises a tombstone that Redis may have lost. */
  raiseTombstone: `
${tombstone}
raise(KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]))
return 1`,

  /**
   * Begins to end all sessions of an index, in its slot. Unless the token was used before: raises
   * the tombstone, notifies the processes, and returns the members. From then on, only a sign-in
   * that began after the order can add a session.
   */
  beginEnding: `
${now}${index}${tombstone}
local at, ttl, channel, notice = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4]
if redis.call('EXISTS', KEYS[3]) == 1 then return false end
-- The first write frees memory. After that, Redis allows further writes even when it is full, so a logout succeeds.
prune(KEYS[1])
raise(KEYS[2], at, ttl)
redis.call('PUBLISH', channel, notice)
return redis.call('ZRANGE', KEYS[1], 0, -1)`,

  /**
   * Ends sessions of one slot: notifies the processes, and deletes the sessions with their leases.
   * Ended by its sub, each gets a tombstone, because it may be between the two steps of its
   * creation. Returns the number of receivers, whether the `jti` was taken (with a `jti_ttl` of 0,
   * it is not), and the ended sessions. Without `leave` they stay in the index until all were
   * notified. KEYS are the index, three keys for each session, and the `jti`.
   */
  endSessions: `
${now}${index}
local channel, notice, tombstone_ttl, leave = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1'
local jti_ttl = tonumber(ARGV[5])
prune(KEYS[1])
local ended = { 0, 0 }
if #ARGV > 5 then ended[1] = redis.call('PUBLISH', channel, notice) end
for n = 6, #ARGV do
  local hash, key = ARGV[n], (n - 6) * 3 + 2
  local found = redis.call('HMGET', KEYS[key], 'sealed', 'sub')
  if found[1] then
    ended[#ended + 1] = hash
    ended[#ended + 1] = found[1]
    ended[#ended + 1] = found[2]
  end
  redis.call('DEL', KEYS[key], KEYS[key + 1])
  if leave then redis.call('ZREM', KEYS[1], hash) end
  if tombstone_ttl > 0 then redis.call('SET', KEYS[key + 2], '1', 'PX', tombstone_ttl) end
end
if jti_ttl > 0 and redis.call('SET', KEYS[#KEYS], '1', 'PX', jti_ttl, 'NX') then ended[2] = 1 end
return ended`,

  /**
   * The last step after endings of an index whose notices were sent, if `endSessions` did not do
   * it: removes sessions from the index, and takes the `jti` after the last ones. Returns 0 when
   * another attempt took it.
   */
  finishEnding: `
${now}${index}
local jti_ttl = tonumber(ARGV[1])
prune(KEYS[1])
for n = 2, #ARGV do redis.call('ZREM', KEYS[1], ARGV[n]) end
if jti_ttl == 0 then return 1 end
return redis.call('SET', KEYS[2], '1', 'PX', jti_ttl, 'NX') and 1 or 0`,

  /** Publishes a message at the server that owns the key. Returns the number of receivers. */
  publishMessage: `
return redis.call('PUBLISH', ARGV[1], ARGV[2])`,

  /**
   * A beat: publishes its time of sending. Returns the receivers, the epoch, and the time of the
   * server. PERSIST changes nothing but counts as a write: a replica rejects it, and so does a
   * primary that lacks the replicas of `min-replicas-to-write`.
   */
  beat: `
${now}
local epoch_if_none, channel, sent_at = ARGV[1], ARGV[2], ARGV[3]
redis.call('PERSIST', KEYS[1])
local epoch = redis.call('GET', KEYS[1])
if not epoch then
  epoch = epoch_if_none
  redis.call('SET', KEYS[1], epoch)
end
local receivers = 0
if channel ~= '' then receivers = redis.call('PUBLISH', channel, sent_at) end
return { receivers, epoch, string.format('%.0f', now) }`,

  /** Writes twice, with time in between. See `tryConnections`. */
  writeHalves: `
redis.call('SET', KEYS[1], 'half', 'PX', ARGV[1])
for n = 1, 2000 do redis.call('EXISTS', KEYS[1]) end
redis.call('SET', KEYS[1], 'whole', 'PX', ARGV[1])
return 1`,

  /** The time of the server that owns the key, in ms since the epoch. */
  clock: `
${now}
return string.format('%.0f', now)`,

  /** Extends a lease that this owner still holds. */
  renewLease: `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`,

  /** Releases a lease that this owner still holds. */
  releaseLease: `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`,

  /** Stores a document unless it was written since it was read. Version 0: there was none. */
  writeDocument: `
local sealed, version, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3])
if (redis.call('HGET', KEYS[1], 'version') or '0') ~= version then return 0 end
redis.call('HSET', KEYS[1], 'sealed', sealed, 'version', version + 1)
redis.call('PEXPIRE', KEYS[1], ttl)
return 1`,

  /** Adds a session to the index of jobs, unless it is there. The index lasts at least as long. */
  watchJob: `
${now}
local session, after, ttl = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('ZADD', KEYS[1], 'NX', string.format('%.0f', now + after), session)
if redis.call('PTTL', KEYS[1]) < ttl then redis.call('PEXPIRE', KEYS[1], ttl) end
return 1`,

  /**
   * Takes due entries of the index of jobs, after those of ended sessions became due. Returns them,
   * and their new time.
   */
  takeJobs: `
${now}
local limit, lease = tonumber(ARGV[1]), tonumber(ARGV[2])
for n = 3, #ARGV do redis.call('ZADD', KEYS[1], 'XX', string.format('%.0f', now), ARGV[n]) end
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now), 'LIMIT', 0, limit)
local later = string.format('%.0f', now + lease)
for _, session in ipairs(due) do redis.call('ZADD', KEYS[1], later, session) end
due[#due + 1] = later
return due`,

  /** Moves an entry of the index of jobs, unless it was moved since it was taken. */
  lookAtJobAgain: `
${now}
local session, taken_until, after = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local score = redis.call('ZSCORE', KEYS[1], session)
if not score or tonumber(score) ~= taken_until then return 0 end
return redis.call('ZADD', KEYS[1], string.format('%.0f', now + after), session)`,

  /** Moves an entry of the index of jobs, if it is there. */
  moveJob: `
${now}
return redis.call('ZADD', KEYS[1], 'XX', string.format('%.0f', now + tonumber(ARGV[2])), ARGV[1])`,

  /**
   * Reads a job. Returns how long to wait while its session is alive, which may get a job at any
   * time, or another process does the job; nothing if there is no job; or the job and the number of
   * this attempt.
   */
  openJob: `
${now}
local lease = tonumber(ARGV[1])
local alive_for = redis.call('PTTL', KEYS[1])
if alive_for > 0 then return { alive_for } end
local job = redis.call('HMGET', KEYS[2], 'sealed', 'not_before')
if not job[1] then return {} end
local wait = tonumber(job[2] or 0) - now
if wait > 0 then return { wait } end
redis.call('HSET', KEYS[2], 'not_before', string.format('%.0f', now + lease))
return { job[1], redis.call('HINCRBY', KEYS[2], 'attempts', 1) }`,

  /** Makes a job due again later. */
  postponeJob: `
${now}
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
return redis.call('HSET', KEYS[1], 'sealed', ARGV[1], 'not_before', string.format('%.0f', now + tonumber(ARGV[2])))`,

  /** Begins a kept request, unless its person has `max` of them. */
  keptBegin: `
${now}${index}
local hash, max, ttl = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
if #redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. now, '+inf') >= max then return 0 end
redis.call('HSET', KEYS[2], 'state', 'arriving', 'parts', 0)
redis.call('PEXPIRE', KEYS[2], ttl)
add(KEYS[1], hash, now + ttl)
return 1`,

  /** Adds a part to a kept request that arrives. The field of a part is its number. */
  keptAppend: `
${now}${index}
local hash, part, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3])
if redis.call('HGET', KEYS[2], 'state') ~= 'arriving' then return 0 end
local n = tonumber(redis.call('HGET', KEYS[2], 'parts'))
redis.call('HSET', KEYS[2], n, part, 'parts', n + 1)
redis.call('PEXPIRE', KEYS[2], ttl)
add(KEYS[1], hash, now + ttl)
return 1`,

  /** The content of a kept request is complete. */
  keptComplete: `
${now}${index}
local hash, head, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3])
if redis.call('HGET', KEYS[2], 'state') ~= 'arriving' then return 0 end
redis.call('HSET', KEYS[2], 'head', head, 'state', 'kept')
redis.call('PEXPIRE', KEYS[2], ttl)
add(KEYS[1], hash, now + ttl)
return 1`,

  /** Takes the parts of a kept request, once. */
  keptTake: `
if redis.call('HGET', KEYS[1], 'state') ~= 'kept' then return false end
-- After a write that frees memory, Redis allows the next one even when it is full.
redis.call('HDEL', KEYS[1], 'none')
redis.call('HSET', KEYS[1], 'state', 'sending')
local parts = {}
for n = 1, tonumber(redis.call('HGET', KEYS[1], 'parts')) do
  parts[n] = redis.call('HGET', KEYS[1], n - 1)
end
return parts`,

  /** The parts that were taken have not been sent. */
  keptGiveBack: `
if redis.call('HGET', KEYS[1], 'state') ~= 'sending' then return 0 end
redis.call('HDEL', KEYS[1], 'none')
redis.call('HSET', KEYS[1], 'state', 'kept')
return 1`,

  /** The parts that were taken are sent. Only the head stays, for the rest of its time. */
  keptFinish: `
if redis.call('HGET', KEYS[2], 'state') ~= 'sending' then return 0 end
local head, ttl = redis.call('HGET', KEYS[2], 'head'), redis.call('PTTL', KEYS[2])
redis.call('DEL', KEYS[2])
redis.call('HSET', KEYS[2], 'head', head, 'state', 'sent')
redis.call('PEXPIRE', KEYS[2], ttl)
redis.call('ZREM', KEYS[1], ARGV[1])
return 1`,

  /** Deletes a kept request whose parts were not taken. */
  keptDrop: `
local state = redis.call('HGET', KEYS[2], 'state')
if state ~= 'arriving' and state ~= 'kept' then return 0 end
redis.call('ZREM', KEYS[1], ARGV[1])
return redis.call('DEL', KEYS[2])`,
} as const

export type ScriptName = keyof typeof scripts
