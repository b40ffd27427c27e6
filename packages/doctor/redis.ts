import {
  printable,
  redisAdvice,
  type RedisFacts,
  type RedisFailure,
  type RedisServerFacts,
  type RedisStoreConfig,
} from '../../src/entries/doctor.ts'
import { fault, type Finding, found, ok, warning } from './finding.ts'

/** The findings about the Redis that stores the sessions. */
export function redisFindings(facts: RedisFacts | RedisFailure, config: RedisStoreConfig): Finding[] {
  if ('why' in facts) return [connectionFinding(facts)]
  return found(
    ...facts.servers.flatMap((server) => serverFindings(server, config, facts.servers.length)),
    rightsFinding(facts, config),
    fitnessFinding(facts),
    facts.error === undefined ? undefined : errorFinding(facts.error),
  )
}

const whileUnavailable = 'until it responds, pages that need a session get 503, and nobody can sign in'

function connectionFinding(failure: RedisFailure): Finding {
  return fault('redis.connection', `cannot be used: ${failure.why}`, {
    why: whileUnavailable,
    todo: failure.wrongScheme ?? redisAdvice(failure),
  })
}

function serverFindings(server: RedisServerFacts, config: RedisStoreConfig, count: number): Finding[] {
  return found(
    versionFinding(server),
    runFinding(server),
    modeFinding(server, config, count),
    memoryFinding(server),
    persistenceFinding(server),
    latencyFinding(server, config),
    clockFinding(server),
    replicaFinding(server, config),
  )
}

const undetectedRestore =
  'the gateway cannot detect that Redis was restored from an older copy, and may serve sessions that have ended'

function versionFinding({ version }: RedisServerFacts): Finding {
  const id = 'redis.version'
  if (version === undefined)
    return warning(id, 'its version is unknown', {
      why: `without INFO, ${undetectedRestore}; version and eviction policy are unknown`,
      todo: 'allow INFO for the Redis user (+info)',
    })
  const major = Number(/(\d+)\./.exec(version)?.[1])
  if (major >= 7) return ok(id, version)
  return warning(id, `${version} is older than the tested versions`, {
    why: 'the gateway is tested with Redis 7',
    todo: 'use Redis 7 or newer',
  })
}

function runFinding({ version, run_id }: RedisServerFacts): Finding | undefined {
  // Without INFO this is unknown; the finding `redis.version` says so.
  if (version === undefined || run_id !== undefined) return undefined
  return warning('redis.run', 'has no run_id in INFO', {
    why: undetectedRestore,
    todo: 'use a Redis that has a run_id, or never restore it from a file that is older than its last write',
  })
}

function replicaFinding(
  { replicasAcknowledging: count }: RedisServerFacts,
  { replicasAcknowledge: wanted }: RedisStoreConfig,
): Finding | undefined {
  if (count === undefined) return undefined
  const id = 'redis.replicas'
  if (count >= wanted) return ok(id, `${count} replicas acknowledge writes (replicas_acknowledge: ${wanted})`)
  return fault(
    id,
    `${count} replicas acknowledge writes, but session.store.redis.replicas_acknowledge requires ${wanted}`,
    {
      why: 'each Logout Token and each sign-out gets 503',
      todo: 'connect more replicas to this server (INFO replication lists them), or lower replicas_acknowledge',
    },
  )
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

function modeFinding({ mode, role }: RedisServerFacts, { kind }: RedisStoreConfig, count: number): Finding | undefined {
  // Without INFO this is unknown; the finding `redis.version` says so.
  if (mode === undefined) return undefined
  const id = 'redis.mode'
  const expected = modes[kind]
  if (mode !== expected) {
    const better =
      mode === 'cluster'
        ? 'session.store.redis.cluster'
        : mode === 'sentinel'
          ? 'session.store.redis.sentinels, with name'
          : 'session.store.redis.url'
    return fault(id, `is a ${mode}, but session.store.redis.${settings[kind]} expects a ${expected}`, {
      why: 'it rejects commands, or stores data on a node where it is not read',
      todo: `use its address in ${better}`,
    })
  }
  if (role !== undefined && role !== 'master')
    return fault(id, 'is a replica', {
      why: 'a replica accepts no writes: nobody can sign in or out',
      todo: 'use the address of the primary; to follow failovers, use the Sentinels',
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
    return warning(id, 'its behavior when it is full is unknown', {
      why: 'a Redis that evicts loses sessions and the records of logouts: a session that has ended could continue',
      todo: 'check that its maxmemory-policy is noeviction',
    })
  if (policy !== 'noeviction' && maxmemory > 0)
    return warning(
      id,
      `evicts when it is full (maxmemory-policy ${policy}${evicted_keys > 0 ? `; ${evicted_keys} keys so far` : ''})`,
      {
        why: 'it loses sessions and the records of logouts: a session that has ended could continue',
        todo: 'set maxmemory-policy to noeviction: all keys of the gateway expire',
      },
    )
  const share = maxmemory === 0 ? 0 : used_memory / maxmemory
  const filled =
    maxmemory === 0 ? 'no limit of its own' : `${Math.round(share * 100)} % of ${megabytes(maxmemory)} used`
  if (share > 0.8)
    return warning(id, `is nearly full: ${filled}`, {
      why: 'when it is full, nobody can sign in',
      todo: 'raise its maxmemory, or check what else is stored there',
    })
  return ok(id, `evicts nothing (${policy}, ${filled})`)
}

/**
 * Counts snapshots, because the Redis user of the gateway may not read the configuration (`CONFIG
 * GET save`).
 */
function persistenceFinding({
  aof_enabled,
  rdb_saves = 0,
  rdb_last_load_keys_loaded = 0,
}: RedisServerFacts): Finding | undefined {
  if (aof_enabled !== 0 || (rdb_saves === 0 && rdb_last_load_keys_loaded === 0)) return undefined
  return warning('redis.persistence', 'stores its data in snapshots only (aof_enabled:0)', {
    why: 'after a restart from a snapshot, the last minutes of sign-ins, refreshes and logouts are missing: the gateway checks each session at the provider, and people whose tokens were refreshed in these minutes have to sign in again',
    todo: 'set appendonly yes, appendfsync everysec and save "" as docs/redis.md recommends',
  })
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1024 / 1024)} MiB`
}

function latencyFinding({ pingMs }: RedisServerFacts, { timeoutMs }: RedisStoreConfig): Finding {
  const id = 'redis.latency'
  if (pingMs === undefined)
    return fault(id, 'does not respond to PING', {
      why: whileUnavailable,
      todo: 'allow PING for the Redis user, and check what keeps Redis busy',
    })
  const what = `round trip of ${pingMs.toFixed(1)} ms (median)`
  if (pingMs <= 10 && pingMs < timeoutMs / 4) return ok(id, what)
  return warning(id, what, {
    why: `requests wait for Redis when their session is not in memory; after ${timeoutMs} ms (session.store.redis.timeout) they get 503`,
    todo: 'run the gateway closer to Redis; if it is close, check what keeps Redis busy',
  })
}

function clockFinding({ clockAheadMs }: RedisServerFacts): Finding | undefined {
  if (clockAheadMs === undefined || Math.abs(clockAheadMs) < 1000) return undefined
  return warning(
    'redis.clock',
    `its clock is ${(Math.abs(clockAheadMs) / 1000).toFixed(1)} s ${clockAheadMs < 0 ? 'behind' : 'ahead of'} the local clock`,
    {
      why: 'one of the two is wrong: the gateway may accept expired tokens or reject valid ones, and sessions may end early or late (logouts depend on the clock of Redis only)',
      todo: 'synchronize all clocks with NTP',
    },
  )
}

function rightsFinding(
  { denied, error }: RedisFacts,
  { keyPrefix, username = 'default' }: RedisStoreConfig,
): Finding | undefined {
  const id = 'redis.rights'
  if (denied.length === 0)
    return error === undefined ? ok(id, 'the user may run all commands that the gateway needs') : undefined
  return fault(id, `the user ${username} may not run ${denied.join(', ')} on ${keyPrefix}*`, {
    why: effectOfDenied(denied),
    todo: `ACL SETUSER ${username} ~${keyPrefix}* &${keyPrefix}* ${denied.map((command) => `+${command.toLowerCase()}`).join(' ')}`,
  })
}

function fitnessFinding({ unfit, denied, error }: RedisFacts): Finding | undefined {
  const id = 'redis.fitness'
  // Without these rights, it cannot be tried.
  if (denied.length > 0 || error !== undefined) return undefined
  if (unfit === undefined) return ok(id, 'its time, expiries, scripts and messages are as the gateway relies on')
  return fault(id, `is not fit: ${printable(unfit)}`, {
    why: `logouts could be lost, so the gateway refuses it: ${whileUnavailable}`,
    todo: 'use one of the servers that docs/redis.md names as tried',
  })
}

function effectOfDenied(denied: readonly string[]): string {
  const failures = 'signing in, signing out or receiving logouts fails when the command is needed'
  if (!denied.includes('INFO')) return failures
  const withoutInfo = `without INFO, ${undetectedRestore}`
  return denied.length === 1 ? withoutInfo : `${failures}; ${withoutInfo}`
}

function errorFinding(error: string): Finding {
  return fault('redis.commands', `rejects commands: ${printable(error.slice(0, 200))}`, {
    why: whileUnavailable,
    todo: redisAdvice({ why: error }),
  })
}
