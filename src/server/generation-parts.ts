import { ApplicationSecrets } from '../application-sign-in/secrets.ts'
import { Evaluations, maxUnderWay } from '../authzen/evaluations.ts'
import { freeMemory } from '../config/memory.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import { isShared } from '../config/model/session.ts'
import type { Clock } from '../core/clock.ts'
import type { SessionKey } from '../core/names.ts'
import { createRouteTable } from '../gate/rules/route-table.ts'
import { TrustedProxies } from '../http/forwarded.ts'
import { algorithmsOf, signingKeyPurpose } from '../identity/signed/signing-key.ts'
import { RotatingKeys } from '../keys/rotating-keys.ts'
import { createAccountLimits } from '../limits/endpoint-limits.ts'
import { Shares } from '../limits/fair-queue.ts'
import { budgetBytes, MemoryBudget } from '../limits/memory-budget.ts'
import { RejectedClients } from '../limits/rejected-clients.ts'
import { LiveStreams } from '../proxy/live-streams.ts'
import { TargetPool } from '../proxy/targets/target.ts'
import { Upstreams } from '../proxy/upstream.ts'
import { ProviderCookie } from '../session/cookies/gateway-cookies.ts'
import { ExpiredCookies, SessionCookie } from '../session/cookies/session-cookie.ts'
import { hasEndedBy } from '../session/live/endings.ts'
import { Sessions } from '../session/live/live-sessions.ts'
import { NearCaches } from '../session/live/near-cache.ts'
import { PendingEndings } from '../session/live/pending-endings.ts'
import { audienceOf } from '../session/record/record.ts'
import { createKeyring } from '../session/record/sealed-record.ts'
import { measuredStore } from '../session/store/measured-store.ts'
import { RedisStore } from '../session/store/redis/redis-store.ts'
import { SqliteStore } from '../session/store/sqlite/sqlite-store.ts'
import type { ExchangedTokens } from '../tokens/exchanged-tokens.ts'
import { createProvenClients } from '../tokens/service-accounts.ts'
import { TokenEndings } from '../tokens/token-endings.ts'
import { AllLogoutCalls, createJobs } from './all-logout-calls.ts'
import type { Observing } from './observing.ts'
import { Realms } from './realms.ts'
import type { StreamSessions } from './watch-live-sessions.ts'

/** What all generations share: it outlives a reload. */
export type SharedParts = ReturnType<typeof createSharedParts>

export function createSharedParts(
  config: GatewayConfig,
  observing: Observing,
  { clock, budgetBytes: given }: { readonly clock: Clock; readonly budgetBytes: number | undefined },
) {
  const { log, metrics, pageHistory } = observing
  const onReached = pageHistory && pageHistory.timeline.reached.bind(pageHistory.timeline)
  const { store: storeConfig } = config.session
  const store = measuredStore(
    isShared(storeConfig)
      ? new RedisStore(storeConfig, { log, clock, onReached })
      : new SqliteStore({ ...storeConfig, log, clock }),
    metrics,
  )
  const rejectedClients = new RejectedClients(log, clock)
  const free = freeMemory(config.workers)
  const growthBytes = given === undefined ? free / 2 : undefined
  const memory = new MemoryBudget(given ?? budgetBytes(free), { rejectedClients, growthBytes })
  memory.describe(metrics)
  const isRenewed = (key: SessionKey) => hasEndedBy(key, 'renewal', store)
  return {
    ...observing,
    store,
    rejectedClients,
    memory,
    clock,
    pending: new PendingEndings(log),
    live: new LiveStreams(),
    pool: new TargetPool(),
    caches: new NearCaches(),
    streamSessions: new Map() as StreamSessions,
    accountLimits: { ...createAccountLimits({ clock, rejectedClients }), proven: createProvenClients() },
    tokenEndings: new TokenEndings({ clock, isRenewed }),
    isRenewed,
  }
}

/** What a generation consists of, without the handlers of its requests. */
export type GenerationParts = ReturnType<typeof createParts>

/** @param onActivity see `ProxyParts` */
export function createParts(
  config: GatewayConfig,
  shared: SharedParts & { readonly exchangedTokens: ExchangedTokens },
  onActivity: (session: SessionKey) => void,
) {
  const { live, tracer, log, clock, metrics } = shared
  const { providers, reservedPrefix } = config
  const routes = createRouteTable(config.upstreams)
  const upstreams = new Upstreams(config.upstreams, { ...shared, isTracing: tracer !== undefined, reservedPrefix })
  const keyring = createKeyring(config.session.keys, log)
  const cookie = new SessionCookie(config.session.cookie)
  const providerCookie = new ProviderCookie(cookie)
  const jobs = createJobs(config, keyring)
  const sessions = new Sessions({
    ...shared,
    keyring,
    jobs,
    audiences: providers.map(audienceOf),
    config: config.session,
  })
  const { endings } = sessions
  const expiredCookies = new ExpiredCookies()
  endings.onEnded((keys, where) => {
    live.closeAll(keys)
    // The browser may have signed in again at that process: its cookie is of the new session.
    if (where === 'elsewhere') for (const key of keys) expiredCookies.add(key)
  })
  const parts = { ...shared, routes, upstreams, keyring, jobs, providerCookie, sessions, endings, expiredCookies }
  return {
    ...parts,
    cookie,
    onActivity,
    trusted: new TrustedProxies(config.trustedProxies),
    realms: new Realms(config, parts),
    secrets: new ApplicationSecrets(parts),
    signingKeys: new RotatingKeys({
      ...parts,
      purpose: signingKeyPurpose,
      audience: audienceOf(providers[0]),
      address: config.externalUrl.origin + reservedPrefix,
      config: config.signingKeys,
      algorithms: algorithmsOf(config.upstreams),
    }),
    evaluations: new Evaluations(config.upstreams, { clock, metrics, placesOf: () => new Shares(maxUnderWay) }),
    logoutCalls: new AllLogoutCalls(config, parts),
  }
}
