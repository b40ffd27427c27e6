import type { RedisStoreConfig } from '../config/model.ts'
import { printable } from '../core/printable.ts'
import type { RedisFacts, RedisFailure, RedisServerFacts } from '../session/redis/examine.ts'
import { connectionAdvice } from './connection-advice.ts'
import { fault, type Finding, ok, warning } from './finding.ts'

/** What there is to say of the Redis that keeps the sessions. */
export function redisFindings(facts: RedisFacts | RedisFailure, config: RedisStoreConfig): Finding[] {
  if ('why' in facts) return [notThere(facts)]
  return [
    ...facts.servers.flatMap((server) => serverFindings(server, config, facts.servers.length)),
    ...rightsFindings(facts, config),
    ...(facts.error === undefined ? [] : [errorFinding(facts.error)]),
  ]
}

const servedMeanwhile = 'until it answers, pages behind the sign-in are answered with 503, and nobody can sign in'

function notThere({ why, wrongScheme }: RedisFailure): Finding {
  return fault('redis.connection', `cannot be used: ${why}`, {
    why: servedMeanwhile,
    todo: wrongScheme ?? remedyFor(why),
  })
}

function remedyFor(why: string): string {
  if (/NOAUTH|Authentication required/.test(why))
    return 'it wants a password: write session.store.redis.password, with username if it has ACL users'
  if (/WRONGPASS|invalid (?:username|password)|AUTH/.test(why))
    return 'compare username and password with those of Redis (ACL LIST shows the users)'
  if (/do not know a primary/.test(why)) return 'compare session.store.redis.name with SENTINEL MASTERS'
  if (/invalid DB index|out of range/.test(why))
    return 'take a database that it has: 0 to 15 unless it is configured otherwise'
  if (/NOPERM/.test(why))
    return 'give the Redis user the right that is named: see session.store.redis in docs/configuration.md'
  return connectionAdvice(why, 'session.store.redis', 'session.store.redis.ca_file')
}

function serverFindings(server: RedisServerFacts, config: RedisStoreConfig, count: number): Finding[] {
  return [
    versionFinding(server),
    ...runFindings(server),
    ...modeFindings(server, config, count),
    memoryFinding(server),
    ...persistenceFindings(server),
    latencyFinding(server, config),
    ...clockFindings(server),
    ...replicaFindings(server, config),
  ]
}

const olderCopies =
  'the gateway does not notice when Redis is restored from an older copy, and serves sessions that have ended'

function versionFinding({ version }: RedisServerFacts): Finding {
  const id = 'redis.version'
  if (version === undefined)
    return warning(id, 'does not say which version it is', {
      why: `without INFO, ${olderCopies}; version and eviction policy cannot be seen`,
      todo: 'allow INFO to the Redis user (+info)',
    })
  const major = Number(/(\d+)\./.exec(version)?.[1])
  if (major >= 7) return ok(id, version)
  return warning(id, `${version} is older than what the gateway is tested with`, {
    why: 'it is tested with Redis 7',
    todo: 'use Redis 7 or newer',
  })
}

function runFindings({ version, run_id }: RedisServerFacts): Finding[] {
  // Without INFO nothing is known, and that is said of the version.
  if (version === undefined || run_id !== undefined) return []
  return [
    warning('redis.run', 'names no run_id in INFO', {
      why: olderCopies,
      todo: 'use a Redis that names its run_id, or never restore it from a file that is older than its last write',
    }),
  ]
}

function replicaFindings(
  { replicasAcknowledging: count }: RedisServerFacts,
  { replicasAcknowledge: wanted }: RedisStoreConfig,
): Finding[] {
  if (count === undefined) return []
  const id = 'redis.replicas'
  if (count >= wanted) return [ok(id, `${count} replicas acknowledge writes (replicas_acknowledge: ${wanted})`)]
  return [
    fault(id, `${count} replicas acknowledge writes, and session.store.redis.replicas_acknowledge asks for ${wanted}`, {
      why: 'each Logout Token and each sign-out gets 503',
      todo: 'connect more replicas to this server (INFO replication lists them), or lower replicas_acknowledge',
    }),
  ]
}

const modes: Readonly<Record<RedisStoreConfig['kind'], string>> = {
  redis: 'standalone',
  redis_sentinel: 'standalone',
  redis_cluster: 'cluster',
}
const settings: Readonly<Record<RedisStoreConfig['kind'], string>> = {
  redis: 'url',
  redis_sentinel: 'sentinels',
  redis_cluster: 'cluster',
}

function modeFindings(server: RedisServerFacts, config: RedisStoreConfig, count: number): Finding[] {
  // Without INFO nothing is known, and that is said of the version.
  return server.mode === undefined ? [] : [modeFinding(server.mode, server.role, config, count)]
}

function modeFinding(mode: string, role: string | undefined, { kind }: RedisStoreConfig, count: number): Finding {
  const id = 'redis.mode'
  const expected = modes[kind]
  if (mode !== expected) {
    const better =
      mode === 'cluster'
        ? 'session.store.redis.cluster'
        : mode === 'sentinel'
          ? 'session.store.redis.sentinels, with name'
          : 'session.store.redis.url'
    return fault(id, `is a ${mode}, and session.store.redis.${settings[kind]} expects a ${expected}`, {
      why: 'commands are refused, or end up where nobody looks for them',
      todo: `name its address as ${better}`,
    })
  }
  if (role !== undefined && role !== 'master')
    return fault(id, 'is a replica', {
      why: 'nothing can be written there: nobody can sign in or out',
      todo: 'name the primary; to follow it through failovers, name the Sentinels',
    })
  return ok(id, kind === 'redis_cluster' ? `a primary of a Cluster of ${count}` : `${mode}, and a primary`)
}

function memoryFinding({
  maxmemory,
  used_memory = 0,
  maxmemory_policy: policy,
  evicted_keys = 0,
}: RedisServerFacts): Finding {
  const id = 'redis.eviction'
  if (policy === undefined || maxmemory === undefined)
    return warning(id, 'does not say what it does when it is full', {
      why: 'a Redis that evicts forgets sessions, and logouts too: who was signed out could come back',
      todo: 'see that its maxmemory-policy is noeviction',
    })
  if (policy !== 'noeviction' && maxmemory > 0)
    return warning(
      id,
      `evicts when it is full (maxmemory-policy ${policy}${evicted_keys > 0 ? `; ${evicted_keys} keys so far` : ''})`,
      {
        why: 'it forgets sessions, and logouts too: who was signed out could come back',
        todo: 'set maxmemory-policy to noeviction: everything here expires by itself',
      },
    )
  const share = maxmemory === 0 ? 0 : used_memory / maxmemory
  const filled =
    maxmemory === 0 ? 'no limit of its own' : `${Math.round(share * 100)} % of ${megabytes(maxmemory)} used`
  if (share > 0.8)
    return warning(id, `is nearly full: ${filled}`, {
      why: 'when it is full, nobody can sign in any more',
      todo: 'raise its maxmemory, or see what else lies there',
    })
  return ok(id, `evicts nothing (${policy}, ${filled})`)
}

/**
 * `CONFIG GET save` is more than the user of the gateway may ask, so the snapshots themselves are
 * what is seen.
 */
function persistenceFindings({
  aof_enabled,
  rdb_saves = 0,
  rdb_last_load_keys_loaded = 0,
}: RedisServerFacts): Finding[] {
  if (aof_enabled !== 0 || (rdb_saves === 0 && rdb_last_load_keys_loaded === 0)) return []
  return [
    warning('redis.persistence', 'keeps its data in snapshots alone (aof_enabled:0)', {
      why: 'after a restart from a snapshot, minutes of sign-ins, refreshes and logouts are missing: each session is asked about at the provider, and persons whose tokens were refreshed since then sign in again',
      todo: 'set appendonly yes, appendfsync everysec and save "" as docs/redis.md recommends',
    }),
  ]
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1024 / 1024)} MiB`
}

function latencyFinding({ pingMs }: RedisServerFacts, { timeoutMs }: RedisStoreConfig): Finding {
  const id = 'redis.latency'
  if (pingMs === undefined)
    return fault(id, 'does not answer PING', {
      why: servedMeanwhile,
      todo: 'allow PING to the Redis user, and see what keeps it busy',
    })
  const what = `${pingMs.toFixed(1)} ms there and back (median)`
  if (pingMs <= 10 && pingMs < timeoutMs / 4) return ok(id, what)
  return warning(id, what, {
    why: `requests of sessions that are not in memory wait for it; after ${timeoutMs} ms (session.store.redis.timeout) they are answered with 503`,
    todo: 'bring the gateway and Redis closer together; if they are, see what keeps Redis busy',
  })
}

function clockFindings({ clockAheadMs }: RedisServerFacts): Finding[] {
  if (clockAheadMs === undefined || Math.abs(clockAheadMs) < 1000) return []
  return [
    warning(
      'redis.clock',
      `its clock is ${(Math.abs(clockAheadMs) / 1000).toFixed(1)} s ${clockAheadMs < 0 ? 'behind' : 'ahead of'} this one`,
      {
        why: 'one of the two is wrong: tokens that have expired count as valid here or the reverse, and sessions end early or late (logouts are compared by the clock of Redis alone)',
        todo: 'keep all clocks by NTP',
      },
    ),
  ]
}

function rightsFindings(
  { denied, error }: RedisFacts,
  { keyPrefix, username = 'default' }: RedisStoreConfig,
): Finding[] {
  const id = 'redis.rights'
  if (denied.length === 0) return error === undefined ? [ok(id, 'the user may give every command that is needed')] : []
  return [
    fault(id, `the user ${username} may not give ${denied.join(', ')} on ${keyPrefix}*`, {
      why: whyRightsMatter(denied),
      todo: `ACL SETUSER ${username} ~${keyPrefix}* &${keyPrefix}* ${denied.map((command) => `+${command.toLowerCase()}`).join(' ')}`,
    }),
  ]
}

function whyRightsMatter(denied: readonly string[]): string {
  const failures = 'signing in, signing out or hearing of logouts will fail, at the first time that it is needed'
  if (!denied.includes('INFO')) return failures
  const withoutInfo = `without INFO, ${olderCopies}`
  return denied.length === 1 ? withoutInfo : `${failures}; ${withoutInfo}`
}

function errorFinding(error: string): Finding {
  const kind = /^[A-Z]+/.exec(error)?.[0] ?? ''
  const todo =
    {
      READONLY: 'name the primary instead of a replica',
      MOVED: 'it is a node of a Cluster: write session.store.redis.cluster',
      OOM: 'it is full: raise its maxmemory, or see what else lies there',
      MISCONF: 'it cannot write to its disk: see its log',
      NOREPLICAS: 'it has too few replicas for min-replicas-to-write: see whether they run',
      CLUSTERDOWN: 'some slots of the Cluster have no node: see CLUSTER INFO',
      LOADING: 'it is still reading its data: wait a moment',
    }[kind] ?? 'look it up in the documentation of Redis'
  return fault('redis.commands', `refuses commands: ${printable(error.slice(0, 200))}`, {
    why: servedMeanwhile,
    todo,
  })
}
