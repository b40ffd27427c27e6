import { setTimeout as wait } from 'node:timers/promises'
import { upstreamsOfHost } from '../config/hosts.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import type { ProviderConfig } from '../config/model/provider.ts'
import type { UpstreamConfig } from '../config/model/upstream.ts'
import type { Clock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { SessionKey } from '../core/names.ts'
import type { Keyring } from '../core/seal.ts'
import type { Realm as GateRealm } from '../gate/identify.ts'
import type { RouteTable } from '../gate/rules/route-table.ts'
import { canonicalTarget } from '../http/request-target.ts'
import { KeptRequests } from '../kept-forms/kept-requests.ts'
import type { Audit } from '../observe/audit.ts'
import type { Log } from '../observe/log.ts'
import type { Metrics } from '../observe/metrics.ts'
import { OpenidProvider } from '../provider/openid-provider.ts'
import { BoundCookie } from '../session/cookies/bound-cookie.ts'
import { SessionCookie } from '../session/cookies/cookie.ts'
import { PersonCookie } from '../session/cookies/person-cookie.ts'
import type { ProviderCookie } from '../session/cookies/provider-cookie.ts'
import { RefusedSignIns } from '../session/cookies/refused-sign-in.ts'
import type { SessionEndings } from '../session/live/endings.ts'
import { hasEndedBy } from '../session/live/marks.ts'
import type { Sessions } from '../session/live/sessions.ts'
import { PersonSessions } from '../session/people/person-sessions.ts'
import { SessionsOfAudience } from '../session/people/sessions-of-audience.ts'
import { audienceOf, sessionKey } from '../session/record/record.ts'
import type { SessionStore } from '../session/store/store.ts'
import { Returns } from '../sign-in/returns.ts'
import { StreamRecord } from '../signals/stream-record.ts'
import { Upkeep } from '../tokens/upkeep.ts'
import { countedRefreshes } from './counted-refreshes.ts'
import { providerLog } from './provider-log.ts'
import { runInOrder } from './shutdown.ts'

export interface RealmParts {
  readonly store: SessionStore
  readonly sessions: Sessions
  readonly endings: SessionEndings
  readonly keyring: Keyring
  readonly providerCookie: ProviderCookie
  readonly routes: RouteTable
  readonly clock: Clock
  readonly log: Log
  readonly audit: Audit
  readonly metrics: Metrics
}

/** A provider with what is its own: its sessions, its cookies, its URLs. */
export class Realm implements GateRealm {
  readonly config: ProviderConfig
  readonly prefix: string
  readonly clockToleranceMs: number
  readonly provider: OpenidProvider
  readonly cookie: SessionCookie
  readonly boundCookie: BoundCookie
  readonly sessions: SessionsOfAudience
  readonly upkeep: Upkeep
  readonly personCookie: PersonCookie
  readonly kept: KeptRequests
  readonly personSessions: PersonSessions
  readonly refusedSignIns: RefusedSignIns
  readonly returns: Returns
  readonly hasEndedElsewhere: GateRealm['hasEndedElsewhere']
  readonly streamRecord: StreamRecord

  constructor(config: ProviderConfig, { session, keptRequests }: GatewayConfig, parts: RealmParts) {
    const { store, keyring, clock, audit, metrics } = parts
    const log = providerLog(parts.log, config)
    const audience = audienceOf(config)
    this.config = config
    this.prefix = config.prefix
    this.clockToleranceMs = config.clockToleranceMs
    this.cookie = new SessionCookie({ ...session.cookie, name: config.cookieName })
    this.boundCookie = new BoundCookie({ config: session.deviceBinding, cookie: this.cookie, keyring, clock })
    this.sessions = new SessionsOfAudience(audience, parts.sessions)
    this.provider = new OpenidProvider(config, { clock, log, metrics })
    this.upkeep = new Upkeep(session, {
      ...{ store, clock, log, audit, sessions: this.sessions, endings: parts.endings },
      provider: countedRefreshes(this.provider, metrics),
    })
    this.personCookie = new PersonCookie({
      ...{ keyring, audience, clock, cookie: this.cookie },
      absoluteTimeoutMs: session.absoluteTimeoutMs,
    })
    const { sessions, cookie } = this
    this.personSessions = new PersonSessions({ store, sessions, endings: parts.endings, max: session.maxPerPerson })
    this.hasEndedElsewhere =
      session.maxPerPerson?.whenExceeded === 'end_oldest' ? (key) => hasEndedBy(key, 'elsewhere', store) : undefined
    this.refusedSignIns = new RefusedSignIns({ keyring, audience, clock, store, cookie })
    this.returns = new Returns({ clock, log })
    this.streamRecord = new StreamRecord({ store, keyring, audience })
    this.kept = new KeptRequests(keptRequests, { keyring, audience, metrics, store: store.kept, cookie: this.cookie })
  }

  get audience(): string {
    return this.sessions.audience
  }

  /** Resolves when each call to the provider, and its one retry, has ended or timed out. */
  callsEnd(): Promise<void> {
    return wait(this.config.timeoutMs * 2, undefined, { ref: false })
  }
}

/** The realm that a request means, or the providers between which the person has to choose. */
export interface Meant {
  readonly realm: Realm
  readonly choices: readonly ProviderConfig[]
  /** All realms of the page, or else of the host. */
  readonly candidates: readonly Realm[]
}

/** A page of a host (without port): its path and query. */
export interface PageOfHost {
  readonly host: string
  readonly path: string
}

/** The realms of a gateway: one, or several that share the gateway and the store. */
export class Realms {
  readonly all: readonly [Realm, ...Realm[]]
  readonly #log: Log
  readonly #reservedPrefix: string
  readonly #upstreams: readonly UpstreamConfig[]
  readonly #ofUpstream: ReadonlyMap<UpstreamConfig, readonly Realm[]>
  readonly #routes: RouteTable
  readonly #providerCookie: ProviderCookie

  constructor(config: GatewayConfig, parts: RealmParts) {
    const [first, ...others] = config.providers
    this.all = [new Realm(first, config, parts), ...others.map((provider) => new Realm(provider, config, parts))]
    this.#log = parts.log
    this.#reservedPrefix = config.reservedPrefix
    this.#upstreams = config.upstreams
    this.#ofUpstream = new Map(config.upstreams.map((upstream) => [upstream, this.#named(upstream.providers)]))
    this.#routes = parts.routes
    this.#providerCookie = parts.providerCookie
  }

  /** Begins to discover the providers. */
  start(): void {
    for (const { provider } of this.all) provider.start()
  }

  /** Whether all providers have been found. */
  get isKnown(): boolean {
    return this.all.every(({ provider }) => provider.isKnown)
  }

  /** The realms in which people sign in for an upstream. */
  ofUpstream(upstream: UpstreamConfig): readonly Realm[] {
    return this.#ofUpstream.get(upstream) ?? []
  }

  of(provider: ProviderConfig): Realm {
    return this.all.find(({ config }) => config.name === provider.name) ?? this.all[0]
  }

  /** The realm whose session a request has, by the cookie of the request. */
  ofSession(upstream: UpstreamConfig, session: SessionKey | undefined, cookieHeader: string | undefined): Realm {
    const isIn = ({ cookie }: Realm) => {
      const id = cookie.read(cookieHeader)
      return id !== undefined && sessionKey(id) === session
    }
    return this.ofUpstream(upstream).find(isIn) ?? this.all[0]
  }

  /**
   * The realm of the person who sent a form: that of the session, also of one that has ended, or
   * else the one in which the person of the browser signed in last.
   * @param prefix the path of the endpoints of the realm; another path when it is unknown
   */
  ofForm(upstream: UpstreamConfig, prefix: string, cookieHeader: string | undefined): Realm {
    const realms = this.ofUpstream(upstream)
    return (
      realms.find((realm) => realm.prefix === prefix) ??
      realms.find(({ personCookie }) => personCookie.read(cookieHeader) !== undefined) ??
      realms[0] ??
      this.all[0]
    )
  }

  /** The other realms in which people sign in for the same upstreams. */
  besides(realm: Realm): readonly Realm[] {
    const shared = [...this.#ofUpstream.values()].filter((realms) => realms.includes(realm)).flat()
    return this.all.filter((other) => other !== realm && shared.includes(other))
  }

  /**
   * Which realm a request at a path of no provider means, among those of the first page that
   * belongs to an application or a provider, or else of the host: the one with a session of this
   * browser, the only one, or the one that was chosen last time. For a sign-in, the person has to
   * choose otherwise.
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
   */
  async meant(request: {
    readonly host: string
    readonly cookie: string | undefined
    /** The pages that the request is about, the one that counts most first. */
    readonly pages: readonly PageOfHost[]
  }): Promise<Meant> {
    if (this.all.length === 1) return { realm: this.all[0], choices: [], candidates: this.all }
    const candidates = this.#candidates(request.host, request.pages)
    const [first = this.all[0], ...others] = candidates
    if (others.length === 0) return { realm: first, choices: [], candidates: [first] }
    const withCookie = candidates.filter(({ cookie }) => cookie.isIn(request.cookie))
    for (const realm of withCookie) {
      const id = realm.cookie.read(request.cookie)
      const session = id && (await realm.sessions.read(sessionKey(id)))
      if (session && realm.boundCookie.faultOf(session.key, session.record.device, request.cookie) === undefined)
        return { realm, choices: [], candidates }
    }
    const remembered = this.#providerCookie.read(request.cookie)
    const again = withCookie[0] ?? candidates.find(({ config }) => config.name === remembered)
    if (again !== undefined) return { realm: again, choices: [], candidates }
    return { realm: first, choices: candidates.map(({ config }) => config), candidates }
  }

  /** Ends the calls to the providers. */
  async close(): Promise<void> {
    await runInOrder(
      this.all.map(
        ({ provider }) =>
          () =>
            provider.close(),
      ),
      this.#log,
    )
  }

  /** Resolves when no call to a provider is under way. */
  async settled(): Promise<void> {
    await Promise.all(this.all.map(({ upkeep }) => upkeep.settled()))
  }

  /** Resolves when each call to a provider has ended or timed out. */
  async callsEnd(): Promise<void> {
    await Promise.all(this.all.map((realm) => realm.callsEnd()))
  }

  #candidates(host: string, pages: readonly PageOfHost[]): readonly Realm[] {
    for (const page of pages) {
      const realms = this.#ofPage(page)
      if (realms !== undefined) return realms
    }
    // An endpoint of another host means the applications of that host.
    const [page] = pages
    const ofHost = upstreamsOfHost(page?.host ?? host, this.#upstreams).flatMap((each) => this.ofUpstream(each))
    return [...new Set(ofHost)]
  }

  /** The realms of a page; `undefined` for one that belongs to no application and no provider. */
  #ofPage({ host, path }: PageOfHost): readonly Realm[] | undefined {
    const ofPrefix = this.all.find(({ prefix }) => path.startsWith(prefix))
    if (ofPrefix !== undefined) return [ofPrefix]
    // An upstream at "/" does not serve the pages of the gateway.
    if (path.startsWith(this.#reservedPrefix)) return undefined
    try {
      const route = this.#routes.route(host, 'GET', canonicalTarget(path))
      return route && this.ofUpstream(route.upstream)
    } catch (error) {
      // The path is ambiguous.
      if (error instanceof GatewayError) return undefined
      throw error
    }
  }

  #named(names: readonly string[]): readonly Realm[] {
    return names.flatMap((name) => this.all.find(({ config }) => config.name === name) ?? [])
  }
}
